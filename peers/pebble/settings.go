// The text with which the database is opened, as options of pebble. What is left of it is refused
// by name.
package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
)

// settings are those that no one has taken yet.
type settings map[string]string

func parse(text string) (settings, error) {
	all := settings{}
	for _, part := range strings.Split(text, ";") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			return nil, fmt.Errorf("%s: not of the form A=B", part)
		}
		all[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return all, nil
}

// number takes a setting that is a number of at least low, and gives it to use.
func (s settings) number(name string, low int64, use func(int64)) error {
	text, ok := s[name]
	if !ok {
		return nil
	}
	delete(s, name)
	value, err := strconv.ParseInt(text, 10, 64)
	if err != nil || value < low {
		return fmt.Errorf("%s=%s: not a whole number of at least %d", name, text, low)
	}
	use(value)
	return nil
}

// take takes a setting as text.
func (s settings) take(name string) string {
	text := s[name]
	delete(s, name)
	return text
}

// apply turns the settings into options.
func (s settings) apply(options *pebble.Options) error {
	level := &options.Levels[0]
	switch text := s.take("compression"); text {
	case "", "none":
		level.Compression = func() *sstable.CompressionProfile { return sstable.NoCompression }
	case "zstd":
		level.Compression = func() *sstable.CompressionProfile { return sstable.ZstdCompression }
	default:
		return fmt.Errorf("compression=%s: neither none nor zstd", text)
	}
	switch text := s.take("wal"); text {
	case "", "off":
		options.DisableWAL = true
	case "sync":
	default:
		return fmt.Errorf("wal=%s: neither off nor sync", text)
	}
	numbers := []struct {
		name string
		low  int64
		use  func(int64)
	}{
		{"memtable_size", 1, func(n int64) { options.MemTableSize = uint64(n) }},
		{"memtables", 2, func(n int64) { options.MemTableStopWritesThreshold = int(n) }},
		{"block_cache", 0, func(n int64) { options.Cache = pebble.NewCache(n) }},
		{"bloom_bits", 0, func(n int64) {
			if n > 0 {
				level.FilterPolicy = bloom.FilterPolicy(n)
			}
		}},
		// One of the jobs is the flush.
		{"jobs", 2, func(n int64) {
			options.CompactionConcurrencyRange = func() (int, int) { return 1, int(n) - 1 }
		}},
		{"block_size", 1, func(n int64) { level.BlockSize = int(n) }},
		{"l0_compaction_threshold", 1, func(n int64) { options.L0CompactionThreshold = int(n) }},
		{"l0_stop_writes_threshold", 1, func(n int64) { options.L0StopWritesThreshold = int(n) }},
		{"lbase_max_bytes", 1, func(n int64) { options.LBaseMaxBytes = n }},
		{"target_file_size", 1, func(n int64) { options.TargetFileSizes[0] = n }},
	}
	for _, number := range numbers {
		if err := s.number(number.name, number.low, number.use); err != nil {
			return err
		}
	}
	for name, value := range s {
		return fmt.Errorf("%s=%s: there is no such setting", name, value)
	}
	return nil
}
