package sateen;

import java.util.LinkedHashMap;
import java.util.Map;

/** Reads the text of statistics: a line {@code NAME COUNT : NUMBER} for each counter. */
final class Metrics {
    private Metrics() {}

    static Map<String, Long> parse(String text) {
        Map<String, Long> counts = new LinkedHashMap<>();
        if (text == null) {
            return counts;
        }
        for (String line : text.split("\n")) {
            String[] words = line.trim().split("\\s+");
            // Histograms have more words: their count and sum stand behind these names.
            for (int nth = 1; nth + 2 < words.length; nth++) {
                if (words[nth + 1].equals(":")) {
                    String name = words.length == 4 ? words[0] : words[0] + "." + words[nth].toLowerCase();
                    try {
                        counts.put(name, Long.parseLong(words[nth + 2]));
                    } catch (NumberFormatException notCounted) {
                        // A quantile, which is no counter.
                        continue;
                    }
                }
            }
        }
        return counts;
    }
}
