"""RocksDict's option classes, as options of Sateen.

A setter is of one of three kinds: it sets an option of Sateen (`_MAPPED`), it is accepted without
effect because it concerns speed, space or diagnostics that Sateen decides itself (`_HINTS`), or it
raises ``NotImplementedError`` because it promises something that Sateen does not do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_MAPPED = {
    "create_if_missing": "create_if_missing",
    "create_missing_column_families": "create_missing_column_families",
    "set_atomic_flush": "atomic_flush",
    "set_compaction_readahead_size": "compaction_readahead_bytes",
    "set_db_write_buffer_size": "all_memtables_bytes",
    "set_disable_auto_compactions": "disable_auto_compactions",
    "set_error_if_exists": "error_if_exists",
    "set_hard_pending_compaction_bytes_limit": "hard_pending_compaction_bytes",
    "set_level_compaction_dynamic_level_bytes": "dynamic_level_bytes",
    "set_level_zero_file_num_compaction_trigger": "level0_trigger",
    "set_level_zero_slowdown_writes_trigger": "level0_slowdown",
    "set_level_zero_stop_writes_trigger": "level0_stop",
    "set_max_bytes_for_level_base": "level_base_bytes",
    "set_max_bytes_for_level_multiplier": "level_multiplier",
    "set_max_compaction_bytes": "compaction_bytes_max",
    "set_max_manifest_file_size": "manifest_bytes_max",
    "set_max_total_wal_size": "max_total_wal_bytes",
    "set_num_levels": "levels",
    "set_soft_pending_compaction_bytes_limit": "soft_pending_compaction_bytes",
    "set_target_file_size_base": "table_bytes",
    "set_target_file_size_multiplier": "table_multiplier",
    "set_use_direct_io_for_flush_and_compaction": "direct_io_for_flush_and_compaction",
    "set_use_direct_reads": "direct_reads",
    "set_wal_bytes_per_sync": "wal_bytes_per_sync",
    "set_wal_dir": "wal_dir",
    "set_wal_ttl_seconds": "wal_ttl_seconds",
    "set_write_buffer_size": "memtable_bytes",
    "set_blob_file_size": "value_file_bytes",
    "set_enable_blob_gc": "value_garbage_collection",
    "set_blob_gc_age_cutoff": "value_garbage_age_cutoff",
    "set_blob_gc_force_threshold": "value_garbage_force_threshold",
}

_HINTS = [
    "add_compact_on_deletion_collector_factory",
    "enable_statistics",
    "increase_parallelism",
    "optimize_for_point_lookup",
    "optimize_level_style_compaction",
    "optimize_universal_style_compaction",
    "prepare_for_bulk_load",
    "set_advise_random_on_open",
    "set_allow_concurrent_memtable_write",
    "set_allow_mmap_reads",
    "set_allow_mmap_writes",
    "set_arena_block_size",
    "set_avoid_unnecessary_blocking_io",
    "set_blob_compaction_readahead_size",
    "set_blob_compression_type",
    "set_bloom_locality",
    "set_bottommost_compression_options",
    "set_bottommost_zstd_max_train_bytes",
    "set_bytes_per_sync",
    "set_cuckoo_table_factory",
    "set_db_log_dir",
    "set_delete_obsolete_files_period_micros",
    "set_dump_malloc_stats",
    "set_enable_pipelined_write",
    "set_enable_write_thread_adaptive_yield",
    "set_env",
    "set_inplace_update_locks",
    "set_inplace_update_support",
    "set_is_fd_close_on_exec",
    "set_keep_log_file_num",
    "set_log_file_time_to_roll",
    "set_manifest_preallocation_size",
    "set_max_bytes_for_level_multiplier_additional",
    "set_max_file_opening_threads",
    "set_max_log_file_size",
    "set_max_sequential_skip_in_iterations",
    "set_max_subcompactions",
    "set_max_successive_merges",
    "set_max_write_buffer_size_to_maintain",
    "set_memtable_factory",
    "set_memtable_huge_page_size",
    "set_memtable_prefix_bloom_ratio",
    "set_memtable_whole_key_filtering",
    "set_min_level_to_compress",
    "set_min_write_buffer_number",
    "set_optimize_filters_for_hits",
    "set_paranoid_checks",
    "set_plain_table_factory",
    "set_recycle_log_file_num",
    "set_report_bg_io_stats",
    "set_row_cache",
    "set_skip_checking_sst_file_sizes_on_db_open",
    "set_skip_stats_update_on_db_open",
    "set_stats_dump_period_sec",
    "set_stats_persist_period_sec",
    "set_table_cache_num_shard_bits",
    "set_unordered_write",
    "set_use_adaptive_mutex",
    "set_use_fsync",
    "set_writable_file_max_buffer_size",
    "set_zstd_max_train_bytes",
]


class _Choice:
    """A member of one of RocksDict's enumerations, which are classes with static methods."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Choice) and type(self) is type(other) and self.name == other.name
        )

    def __hash__(self) -> int:
        return hash((type(self), self.name))

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}()"


def _choice(name: str, *members: str) -> Any:
    """Makes an enumeration."""
    made = type(name, (_Choice,), {"__module__": __name__})
    for member in members:
        setattr(made, member, staticmethod(_member(made, member)))
    return made


def _member(made: Callable[[str], _Choice], name: str) -> Callable[..., _Choice]:
    def member(*_: object) -> _Choice:
        return made(name)

    return member


DataBlockIndexType: Any = _choice("DataBlockIndexType", "binary_and_hash", "binary_search")
BlockBasedIndexType: Any = _choice(
    "BlockBasedIndexType", "hash_search", "binary_search", "two_level_index_search"
)
ChecksumType: Any = _choice("ChecksumType", "no_checksum", "crc32c", "xxhash", "xxhash64", "xxh3")
DBCompactionStyle: Any = _choice("DBCompactionStyle", "fifo", "level", "universal")
DBCompressionType: Any = _choice(
    "DBCompressionType", "bz2", "lz4", "lz4hc", "none", "snappy", "zlib", "zstd"
)
DBRecoveryMode: Any = _choice(
    "DBRecoveryMode",
    "absolute_consistency",
    "point_in_time",
    "skip_any_corrupted_record",
    "tolerate_corrupted_tail_records",
)
BottommostLevelCompaction: Any = _choice(
    "BottommostLevelCompaction", "skip", "if_have_compaction_filter", "force", "force_optimized"
)
UniversalCompactionStopStyle: Any = _choice("UniversalCompactionStopStyle", "similar", "total")
KeyEncodingType: Any = _choice("KeyEncodingType", "none", "prefix")
MemtableFactory: Any = _choice("MemtableFactory", "hash_link_list", "hash_skip_list", "vector")

_COMPRESSIONS = {
    "none": "none",
    "snappy": "lz4",
    "lz4": "lz4",
    "lz4hc": "zstd",
    "zlib": "zstd",
    "bz2": "zstd",
    "zstd": "zstd",
}


def _accept(*_: object, **__: object) -> None:
    pass


class _Accepting:
    """An object that keeps what it is given: its settings concern speed and space only."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("set_"):
            return _accept
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


class Cache:
    """A block cache of so many bytes."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity

    @staticmethod
    def new_hyper_clock_cache(capacity: int, estimated_entry_charge: int) -> Cache:
        return Cache(capacity)

    def get_pinned_usage(self) -> int:
        return 0

    def get_usage(self) -> int:
        return 0

    def set_capacity(self, capacity: int) -> None:
        self._capacity = capacity


class BlockBasedOptions(_Accepting):
    """Options of tables."""

    def __init__(self) -> None:
        self._set: dict[str, Any] = {}
        self._cache: Cache | None = None

    def disable_cache(self) -> None:
        self._cache = Cache(1)

    def set_block_cache(self, cache: Cache) -> None:
        self._cache = cache

    def set_block_size(self, size: int) -> None:
        self._set["block_bytes"] = size

    def set_block_restart_interval(self, interval: int) -> None:
        self._set["restart_interval"] = max(interval, 1)

    def set_bloom_filter(self, bits_per_key: int, block_based: bool) -> None:
        self._set["bloom_bits_per_key"] = min(max(round(bits_per_key), 0), 64)


class PlainTableFactoryOptions(_Accepting):
    """Accepted: there is one format of tables."""

    bloom_bits_per_key = 10
    hash_table_ratio: float = 0.75
    index_sparseness = 16
    user_key_length = 0


class CuckooTableOptions(_Accepting):
    """Accepted: there is one format of tables."""


class DBPath:
    """A directory for tables."""

    def __init__(self, path: str, target_size: int) -> None:
        self.path = path


class Env(_Accepting):
    """The file system: the operating system's."""

    @staticmethod
    def mem_env() -> Env:
        raise NotImplementedError("Env.mem_env: a database in memory is not in this package")

    def join_all_threads(self) -> None: ...

    def lower_high_priority_thread_pool_cpu_priority(self) -> None: ...

    def lower_high_priority_thread_pool_io_priority(self) -> None: ...

    def lower_thread_pool_cpu_priority(self) -> None: ...

    def lower_thread_pool_io_priority(self) -> None: ...


class FifoCompactOptions:
    """Options of FIFO compaction."""

    def __init__(self) -> None:
        self.max_table_files_size = 1 << 30


class FlushOptions:
    """Options of a flush."""

    def __init__(self) -> None:
        self.wait = True


class UniversalCompactOptions:
    """Options of universal compaction."""

    def __init__(self) -> None:
        self.size_ratio = 1
        self.min_merge_width = 2
        self.max_merge_width = (1 << 32) - 1
        self.max_size_amplification_percent = 200
        self.compression_size_percent = -1
        self.stop_style: Any = UniversalCompactionStopStyle.total()


class SliceTransform:
    """What the prefix of a key is."""

    def __init__(self, text: str) -> None:
        self._text = text

    @staticmethod
    def create_fixed_prefix(len: int) -> SliceTransform:
        return SliceTransform(f"fixed:{len}")

    @staticmethod
    def create_max_len_prefix(len: int) -> SliceTransform:
        return SliceTransform(f"capped:{len}")

    @staticmethod
    def create_noop() -> SliceTransform:
        return SliceTransform("noop")


class WriteBufferManager:
    """A limit on the memtables of a database."""

    def __init__(self, buffer_size: int, allow_stall: bool) -> None:
        self._bytes = buffer_size

    @staticmethod
    def new_write_buffer_manager_with_cache(
        buffer_size: int, allow_stall: bool, cache: Cache
    ) -> WriteBufferManager:
        return WriteBufferManager(buffer_size, allow_stall)

    def get_usage(self) -> int:
        return 0

    def get_buffer_size(self) -> int:
        return self._bytes

    def set_buffer_size(self, new_size: int) -> None:
        self._bytes = new_size

    def enabled(self) -> bool:
        return self._bytes > 0

    def set_allow_stall(self, allow_stall: bool) -> None: ...


class ReadOptions:
    """Options of a read."""

    def __init__(self) -> None:
        self._fill_cache = True
        self._readahead_bytes = 0
        self._ignore_range_deletions = False
        self._skipped_max = 0
        self._prefix_same_as_start = False
        self._lower: Any = None
        self._upper: Any = None

    def fill_cache(self, v: bool = True) -> None:
        self._fill_cache = v

    def set_ignore_range_deletions(self, v: bool) -> None:
        self._ignore_range_deletions = v

    def set_iterate_lower_bound(self, key: Any) -> None:
        self._lower = key

    def set_iterate_upper_bound(self, key: Any) -> None:
        self._upper = key

    def set_max_skippable_internal_keys(self, num: int) -> None:
        self._skipped_max = num

    def set_prefix_same_as_start(self, v: bool) -> None:
        self._prefix_same_as_start = v

    def set_readahead_size(self, v: int) -> None:
        self._readahead_bytes = v

    def set_tailing(self, v: bool) -> None:
        if v:
            raise NotImplementedError("ReadOptions.set_tailing: make a new iterator instead")

    def set_background_purge_on_iterator_cleanup(self, v: bool) -> None: ...

    def set_pin_data(self, v: bool) -> None: ...

    def set_total_order_seek(self, v: bool) -> None: ...

    def set_verify_checksums(self, v: bool) -> None: ...

    def set_async_io(self, v: bool) -> None: ...


class WriteOptions:
    """Options of a write."""

    def __init__(self) -> None:
        self.sync: bool = False
        self.no_slowdown = False
        self.low_pri = False
        self.ignore_missing_column_families = False
        self.memtable_insert_hint_per_batch = False
        self._disable_wal = False

    def disable_wal(self, disable: bool) -> None:
        self._disable_wal = disable

    def set_sync(self, sync: bool) -> None:
        self.sync = sync


class IngestExternalFileOptions:
    """Options of an ingestion."""

    def __init__(self) -> None:
        self._move_files = False
        self._allow_blocking_flush = True

    def set_move_files(self, v: bool) -> None:
        self._move_files = v

    def set_allow_blocking_flush(self, v: bool) -> None:
        self._allow_blocking_flush = v

    def set_snapshot_consistency(self, v: bool) -> None: ...

    def set_allow_global_seqno(self, v: bool) -> None:
        if not v:
            raise NotImplementedError("IngestExternalFileOptions.set_allow_global_seqno(False)")

    def set_ingest_behind(self, v: bool) -> None:
        if v:
            raise NotImplementedError("IngestExternalFileOptions.set_ingest_behind")


class AccessType:
    """How a database is opened."""

    def __init__(self, kind: str, ttl: int | None = None) -> None:
        self._kind = kind
        self._ttl = ttl

    @staticmethod
    def read_write() -> AccessType:
        return AccessType("read_write")

    @staticmethod
    def read_only(error_if_log_file_exist: bool = True) -> AccessType:
        return AccessType("read_only")

    @staticmethod
    def secondary(secondary_path: str) -> AccessType:
        return AccessType("secondary")

    @staticmethod
    def with_ttl(duration: int) -> AccessType:
        return AccessType("read_write", duration)


class CompactOptions:
    """Options of a manual compaction."""

    def __init__(self) -> None:
        self._rewrite = False

    def set_exclusive_manual_compaction(self, v: bool) -> None: ...

    def set_bottommost_level_compaction(self, lvl: Any) -> None:
        self._rewrite = lvl.name in ("force", "force_optimized")

    def set_change_level(self, v: bool) -> None: ...

    def set_target_level(self, lvl: int) -> None: ...


class Options:
    """Options of a database and of its column families.

    :param raw_mode: keys and values are bytes as they are
    """

    def __init__(self, raw_mode: bool = False) -> None:
        self._raw_mode = raw_mode
        self._set: dict[str, Any] = {}
        self._tables: BlockBasedOptions | None = None
        self._manager: WriteBufferManager | None = None
        self._values_apart: bool | None = None
        self._value_bytes = 1

    def _all(self) -> dict[str, Any]:
        options = dict(self._set)
        if self._tables is not None:
            options.update(self._tables._set)
            if self._tables._cache is not None:
                options["block_cache_bytes"] = self._tables._cache._capacity
        if self._manager is not None and self._manager.enabled():
            options["all_memtables_bytes"] = self._manager._bytes
        if self._values_apart is not None:
            options["value_separation_bytes"] = self._value_bytes if self._values_apart else 0
        return options

    def _database(self) -> dict[str, Any]:
        """The options for an open."""
        return self._all()

    def _family(self) -> dict[str, Any]:
        """The options for a column family."""
        return {name: value for name, value in self._all().items() if name in _family_names()}

    @staticmethod
    def load_latest(
        path: str,
        env: Env | None = None,
        ignore_unknown_options: bool = False,
        cache: Cache | None = None,
    ) -> tuple[Options, dict[str, Options]]:
        """The options of the last open, and those of its column families."""
        from .rdict import _load_latest

        return _load_latest(path)

    def get_statistics(self) -> str | None:
        """Nothing: ``Rdict.property_value`` and :meth:`sateen.Db.metrics` say more."""
        return None

    def set_block_based_table_factory(self, factory: BlockBasedOptions) -> None:
        self._tables = factory

    def set_write_buffer_manager(self, write_buffer_manager: WriteBufferManager) -> None:
        self._manager = write_buffer_manager

    def set_compaction_style(self, style: Any) -> None:
        names = {"level": "leveled", "universal": "tiered", "fifo": "fifo"}
        self._set["compaction_style"] = names[style.name]

    def set_compression_type(self, t: Any) -> None:
        self._set["compression"] = _COMPRESSIONS[t.name]

    def set_compression_per_level(self, level_types: list[Any]) -> None:
        self._set["compression"] = [_COMPRESSIONS[t.name] for t in level_types]

    def set_bottommost_compression_type(self, t: Any) -> None:
        self._set.setdefault("compression", ["none", "none", _COMPRESSIONS[t.name]])

    def set_compression_options(
        self, w_bits: int, level: int, strategy: int, max_dict_bytes: int
    ) -> None:
        if 1 <= level <= 22:
            self._set["zstd_level"] = level

    def set_max_open_files(self, nfiles: int) -> None:
        # -1 is "as many as possible", which is the default.
        if nfiles >= 0:
            self._set["max_open_files"] = max(nfiles, 16)

    def set_max_background_jobs(self, jobs: int) -> None:
        self._set["background_threads"] = max(jobs, 1)
        self._set["max_background_compactions"] = max(jobs - 1, 1)

    def set_max_write_buffer_number(self, nbuf: int) -> None:
        self._set["memtables_max"] = max(nbuf, 2)

    def set_min_write_buffer_number_to_merge(self, to_merge: int) -> None:
        self._set["memtables_to_flush_min"] = to_merge

    def set_prefix_extractor(self, prefix_extractor: SliceTransform) -> None:
        self._set["prefix_extractor"] = prefix_extractor._text

    def set_fifo_compaction_options(self, fco: FifoCompactOptions) -> None:
        self._set["fifo_bytes_max"] = fco.max_table_files_size

    def set_universal_compaction_options(self, uco: UniversalCompactOptions) -> None:
        if uco.compression_size_percent >= 0:
            raise NotImplementedError("UniversalCompactOptions.compression_size_percent")
        style = "similar-size" if uco.stop_style.name == "similar" else "total-size"
        self._set.update(
            tiered_size_ratio=uco.size_ratio,
            tiered_merge_width_min=uco.min_merge_width,
            tiered_merge_width_max=uco.max_merge_width,
            tiered_size_amplification_max=uco.max_size_amplification_percent,
            tiered_stop_style=style,
        )

    def set_ratelimiter(
        self, rate_bytes_per_sec: int, refill_period_us: int, fairness: int
    ) -> None:
        self._set.update(
            rate_limit_bytes_per_second=rate_bytes_per_sec,
            rate_limit_refill_period=f"{max(refill_period_us, 1000)}us",
            rate_limit_fairness=fairness,
        )

    def set_auto_tuned_ratelimiter(
        self, rate_bytes_per_sec: int, refill_period_us: int, fairness: int
    ) -> None:
        self.set_ratelimiter(rate_bytes_per_sec, refill_period_us, fairness)
        self._set["rate_limit_auto_tune"] = True

    def set_wal_recovery_mode(self, mode: Any) -> None:
        if mode.name == "skip_any_corrupted_record":
            raise NotImplementedError("DBRecoveryMode.skip_any_corrupted_record: use Rdict.repair")
        absolute = mode.name == "absolute_consistency"
        self._set["wal_recovery"] = "absolute" if absolute else "prefix"

    def set_wal_size_limit_mb(self, size: int) -> None:
        self._set["wal_size_limit_bytes"] = size << 20

    def set_enable_blob_files(self, val: bool) -> None:
        self._values_apart = val

    def set_min_blob_size(self, val: int) -> None:
        self._value_bytes = max(val, 1)

    def set_value_bytes_max(self, limit: int) -> None:
        """Sets the size of the largest value: 64 MiB unless this is called, at most 1 GiB.

        RocksDict has neither this limit nor this method.
        """
        self._set["value_bytes_max"] = limit

    def set_db_paths(self, paths: list[DBPath]) -> None:
        if paths:
            raise NotImplementedError("Options.set_db_paths: use the option paths of sateen.Db")

    def set_allow_ingest_behind(self, val: bool) -> None:
        if val:
            raise NotImplementedError("Options.set_allow_ingest_behind")


def _mapped(option: str) -> Any:
    def set_it(self: Options, value: Any = None, **named: Any) -> None:
        (self._set[option],) = named.values() if named else (value,)

    return set_it


def _accepted(self: Options, *_: Any, **__: Any) -> None:
    """Accepted without effect."""


for _method, _option in _MAPPED.items():
    setattr(Options, _method, _mapped(_option))
for _method in _HINTS:
    setattr(Options, _method, _accepted)

_family: set[str] = set()


def _family_names() -> set[str]:
    """The names of the options that each column family has."""
    if not _family:
        from ._options import option_infos

        _family.update(info.name for info in option_infos() if info.column_family)
    return _family
