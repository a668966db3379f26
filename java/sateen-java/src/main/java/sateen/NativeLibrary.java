package sateen;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Locale;

/** Finds the native library: a path that the user names, or the one in this jar. */
final class NativeLibrary {
    private static Path found;
    private static boolean copied;

    private NativeLibrary() {}

    /** Removes a copy of the library, which is open: a process that is killed leaves no file behind. */
    static synchronized void loaded() {
        if (copied) {
            found.toFile().delete();
        }
    }

    /** Returns the path of the library, which is looked for once. */
    static synchronized Path path() {
        if (found == null) {
            found = find();
        }
        return found;
    }

    /**
     * Returns the path of the library. The property {@code sateen.library} names a file of the user's;
     * otherwise the library of this system is copied out of the jar, below {@code sateen.tmpdir} or
     * the directory for temporary files.
     */
    private static Path find() {
        String named = System.getProperty("sateen.library");
        if (named != null) {
            Path path = Path.of(named).toAbsolutePath();
            if (!Files.isRegularFile(path)) {
                throw new UnsatisfiedLinkError("sateen.library names " + path + ", which is not a file");
            }
            return path;
        }
        String resource = "/native/" + system() + "/libsateen_java.so";
        try (InputStream library = NativeLibrary.class.getResourceAsStream(resource)) {
            if (library == null) {
                throw new UnsatisfiedLinkError("this jar has no library for " + system()
                    + "; name one with -Dsateen.library=PATH");
            }
            String directory = System.getProperty("sateen.tmpdir", System.getProperty("java.io.tmpdir"));
            Path copy = Files.createTempFile(Path.of(directory), "libsateen_java", ".so");
            // A start that fails before the library is loaded.
            copy.toFile().deleteOnExit();
            copied = true;
            Files.copy(library, copy, StandardCopyOption.REPLACE_EXISTING);
            return copy;
        } catch (IOException failed) {
            throw (UnsatisfiedLinkError) new UnsatisfiedLinkError("the library " + resource
                + " could not be copied out of the jar: " + failed
                + "; name a directory with room with -Dsateen.tmpdir=PATH").initCause(failed);
        }
    }

    /** The system of this process as the jar's folders name it, for instance {@code linux-x86_64}. */
    static String system() {
        String system = System.getProperty("os.name").toLowerCase(Locale.ROOT);
        String machine = System.getProperty("os.arch").toLowerCase(Locale.ROOT);
        machine = machine.equals("amd64") ? "x86_64" : machine.equals("arm64") ? "aarch64" : machine;
        return (system.startsWith("linux") ? "linux" : system.replace(' ', '-')) + "-" + machine;
    }
}
