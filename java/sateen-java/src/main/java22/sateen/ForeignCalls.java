package sateen;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_DOUBLE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;

/**
 * The functions of the C library as method handles. They are constants, so that the compiler of the JVM
 * makes each call a plain one. Addresses are {@code long}, so that a call makes no object. Only a caller's
 * direct buffers are segments: the call then fails if their memory was freed, and keeps it until it returns.
 */
final class ForeignCalls {
    private static final Linker LINKER = Linker.nativeLinker();
    private static final SymbolLookup LIBRARY =
        SymbolLookup.libraryLookup(NativeLibrary.path(), Arena.global());

    static final MethodHandle free;
    static final MethodHandle optionsCreate, optionsDestroy, optionsFromString, optionsAdd64;
    static final MethodHandle optionsStatistics;
    static final MethodHandle tableCreate, tableDestroy, tableSetCache, optionsSetTable;
    static final MethodHandle cacheCreate, cacheUsage, cacheDestroy;
    static final MethodHandle buffersCreate, buffersCreateWithCache, buffersUsage, buffersDestroy;
    static final MethodHandle optionsSetBuffers, optionsSetEnv, envCreate, envThreads, envDestroy;
    static final MethodHandle writeCreate, writeSync, writeNoWal, writeNoSlowdown, writeLow;
    static final MethodHandle readCreate, readDestroy, readSnapshot, readLower, readUpper, readFill;
    static final MethodHandle open, openReadOnly, close, destroy, list, listDestroy;
    static final MethodHandle familyCreate, familyDrop, familyDestroy;
    static final MethodHandle flushCreate, flush, flushWal, compact, property, setOption, statistics, sequence;
    static final MethodHandle histogramCreate, histogramDestroy, histogramRead, histogramCount;
    static final MethodHandle histogramSum, histogramMin, histogramMax, histogramAverage;
    static final MethodHandle histogramMedian, histogramP95, histogramP99;
    static final MethodHandle checkpointCreate, checkpoint, checkpointDestroy;
    static final MethodHandle getPinned, pinnedValue, pinnedDestroy, getIntoBuffer;
    static final MethodHandle put, putBuffers, merge, delete, deleteRange, write;
    static final MethodHandle batchCreate, batchDestroy, batchClear, batchPut, batchMerge;
    static final MethodHandle batchDelete, batchDeleteRange;
    static final MethodHandle snapshot, snapshotRelease;
    static final MethodHandle iterCreate, iterDestroy, iterFirst, iterLast, iterSeek, iterSeekPrevious;
    static final MethodHandle iterNext, iterPrevious, iterValid, iterKey, iterValue, iterError;
    static final MethodHandle backupsOpen, backupsClose, backupsCreate, backupsInfo, backupsRestore;
    static final MethodHandle backupsPurge, backupsVerify, restoreCreate, restoreDestroy;
    static final MethodHandle infoCount, infoId, infoTime, infoSize, infoFiles, infoDestroy;
    /** Options of a flush that waits, for the whole process. */
    static final long FLUSH_OPTIONS;

    static {
        // In a signature: V nothing, P an address or a size, S a segment, I an int, B a byte,
        // D a double.
        free = call("rocksdb_free", "VP");
        optionsCreate = call("rocksdb_options_create", "P");
        optionsDestroy = call("rocksdb_options_destroy", "VP");
        optionsFromString = call("rocksdb_get_options_from_string", "VPPPP");
        optionsAdd64 = call("rocksdb_options_set_uint64add_merge_operator", "VP");
        optionsStatistics = call("rocksdb_options_enable_statistics", "VP");
        tableCreate = call("rocksdb_block_based_options_create", "P");
        tableDestroy = call("rocksdb_block_based_options_destroy", "VP");
        tableSetCache = call("rocksdb_block_based_options_set_block_cache", "VPP");
        optionsSetTable = call("rocksdb_options_set_block_based_table_factory", "VPP");
        cacheCreate = call("rocksdb_cache_create_lru", "PP");
        cacheUsage = call("rocksdb_cache_get_usage", "PP");
        cacheDestroy = call("rocksdb_cache_destroy", "VP");
        buffersCreate = call("rocksdb_write_buffer_manager_create", "PPB");
        buffersCreateWithCache = call("rocksdb_write_buffer_manager_create_with_cache", "PPPB");
        buffersUsage = call("rocksdb_write_buffer_manager_memory_usage", "PP");
        buffersDestroy = call("rocksdb_write_buffer_manager_destroy", "VP");
        optionsSetBuffers = call("rocksdb_options_set_write_buffer_manager", "VPP");
        optionsSetEnv = call("rocksdb_options_set_env", "VPP");
        envCreate = call("rocksdb_create_default_env", "P");
        envThreads = call("rocksdb_env_set_background_threads", "VPI");
        envDestroy = call("rocksdb_env_destroy", "VP");
        writeCreate = call("rocksdb_writeoptions_create", "P");
        writeSync = call("rocksdb_writeoptions_set_sync", "VPB");
        writeNoWal = call("rocksdb_writeoptions_disable_WAL", "VPI");
        writeNoSlowdown = call("rocksdb_writeoptions_set_no_slowdown", "VPB");
        writeLow = call("rocksdb_writeoptions_set_low_pri", "VPB");
        readCreate = call("rocksdb_readoptions_create", "P");
        readDestroy = call("rocksdb_readoptions_destroy", "VP");
        readSnapshot = call("rocksdb_readoptions_set_snapshot", "VPP");
        readLower = call("rocksdb_readoptions_set_iterate_lower_bound", "VPPP");
        readUpper = call("rocksdb_readoptions_set_iterate_upper_bound", "VPPP");
        readFill = call("rocksdb_readoptions_set_fill_cache", "VPB");
        open = call("rocksdb_open_column_families", "PPPIPPPP");
        openReadOnly = call("rocksdb_open_for_read_only_column_families", "PPPIPPPBP");
        close = call("rocksdb_close", "VP");
        destroy = call("rocksdb_destroy_db", "VPPP");
        list = call("rocksdb_list_column_families", "PPPPP");
        listDestroy = call("rocksdb_list_column_families_destroy", "VPP");
        familyCreate = call("rocksdb_create_column_family", "PPPPP");
        familyDrop = call("rocksdb_drop_column_family", "VPPP");
        familyDestroy = call("rocksdb_column_family_handle_destroy", "VP");
        flushCreate = call("rocksdb_flushoptions_create", "P");
        flush = call("rocksdb_flush_cf", "VPPPP");
        flushWal = call("rocksdb_flush_wal", "VPBP");
        compact = call("rocksdb_compact_range_cf", "VPPPPPP");
        property = call("rocksdb_property_value_cf", "PPPP");
        setOption = call("rocksdb_set_options_cf", "VPPIPPP");
        statistics = call("rocksdb_options_statistics_get_string", "PP");
        sequence = call("rocksdb_get_latest_sequence_number", "PP");
        histogramCreate = call("rocksdb_statistics_histogram_data_create", "P");
        histogramDestroy = call("rocksdb_statistics_histogram_data_destroy", "VP");
        histogramRead = call("rocksdb_options_statistics_get_histogram_data", "VPIP");
        histogramCount = call("rocksdb_statistics_histogram_data_get_count", "PP");
        histogramSum = call("rocksdb_statistics_histogram_data_get_sum", "PP");
        histogramMin = call("rocksdb_statistics_histogram_data_get_min", "DP");
        histogramMax = call("rocksdb_statistics_histogram_data_get_max", "DP");
        histogramAverage = call("rocksdb_statistics_histogram_data_get_average", "DP");
        histogramMedian = call("rocksdb_statistics_histogram_data_get_median", "DP");
        histogramP95 = call("rocksdb_statistics_histogram_data_get_p95", "DP");
        histogramP99 = call("rocksdb_statistics_histogram_data_get_p99", "DP");
        checkpointCreate = call("rocksdb_checkpoint_object_create", "PPP");
        checkpoint = call("rocksdb_checkpoint_create", "VPPPP");
        checkpointDestroy = call("rocksdb_checkpoint_object_destroy", "VP");
        getPinned = call("rocksdb_get_pinned_cf", "PPPPPPP");
        pinnedValue = call("rocksdb_pinnableslice_value", "PPP");
        pinnedDestroy = call("rocksdb_pinnableslice_destroy", "VP");
        getIntoBuffer = call("rocksdb_get_into_buffer_cf", "BPPPSPSPPPP");
        put = call("rocksdb_put_cf", "VPPPPPPPP");
        putBuffers = call("rocksdb_put_cf", "VPPPSPSPP");
        merge = call("rocksdb_merge_cf", "VPPPPPPPP");
        delete = call("rocksdb_delete_cf", "VPPPPPP");
        deleteRange = call("rocksdb_delete_range_cf", "VPPPPPPPP");
        write = call("rocksdb_write", "VPPPP");
        batchCreate = call("rocksdb_writebatch_create", "P");
        batchDestroy = call("rocksdb_writebatch_destroy", "VP");
        batchClear = call("rocksdb_writebatch_clear", "VP");
        batchPut = call("rocksdb_writebatch_put_cf", "VPPPPPP");
        batchMerge = call("rocksdb_writebatch_merge_cf", "VPPPPPP");
        batchDelete = call("rocksdb_writebatch_delete_cf", "VPPPP");
        batchDeleteRange = call("rocksdb_writebatch_delete_range_cf", "VPPPPPP");
        snapshot = call("rocksdb_create_snapshot", "PP");
        snapshotRelease = call("rocksdb_release_snapshot", "VPP");
        iterCreate = call("rocksdb_create_iterator_cf", "PPPP");
        iterDestroy = call("rocksdb_iter_destroy", "VP");
        iterFirst = call("rocksdb_iter_seek_to_first", "VP");
        iterLast = call("rocksdb_iter_seek_to_last", "VP");
        iterSeek = call("rocksdb_iter_seek", "VPPP");
        iterSeekPrevious = call("rocksdb_iter_seek_for_prev", "VPPP");
        iterNext = call("rocksdb_iter_next", "VP");
        iterPrevious = call("rocksdb_iter_prev", "VP");
        iterValid = call("rocksdb_iter_valid", "BP");
        iterKey = call("rocksdb_iter_key", "PPP");
        iterValue = call("rocksdb_iter_value", "PPP");
        iterError = call("rocksdb_iter_get_error", "VPP");
        backupsOpen = call("rocksdb_backup_engine_open", "PPPP");
        backupsClose = call("rocksdb_backup_engine_close", "VP");
        backupsCreate = call("rocksdb_backup_engine_create_new_backup_flush", "VPPBP");
        backupsInfo = call("rocksdb_backup_engine_get_backup_info", "PP");
        backupsRestore = call("rocksdb_backup_engine_restore_db_from_backup", "VPPPPIP");
        backupsPurge = call("rocksdb_backup_engine_purge_old_backups", "VPIP");
        backupsVerify = call("rocksdb_backup_engine_verify_backup", "VPIP");
        restoreCreate = call("rocksdb_restore_options_create", "P");
        restoreDestroy = call("rocksdb_restore_options_destroy", "VP");
        infoCount = call("rocksdb_backup_engine_info_count", "IP");
        infoId = call("rocksdb_backup_engine_info_backup_id", "IPI");
        infoTime = call("rocksdb_backup_engine_info_timestamp", "PPI");
        infoSize = call("rocksdb_backup_engine_info_size", "PPI");
        infoFiles = call("rocksdb_backup_engine_info_number_files", "IPI");
        infoDestroy = call("rocksdb_backup_engine_info_destroy", "VP");
        try {
            FLUSH_OPTIONS = (long) flushCreate.invokeExact();
        } catch (Throwable thrown) {
            throw new ExceptionInInitializerError(thrown);
        }
    }

    private static MethodHandle call(String name, String signature) {
        MemorySegment symbol = LIBRARY.find(name)
            .orElseThrow(() -> new UnsatisfiedLinkError("the library has no function " + name));
        MemoryLayout[] arguments = new MemoryLayout[signature.length() - 1];
        for (int nth = 0; nth < arguments.length; nth++) {
            arguments[nth] = layout(signature.charAt(nth + 1));
        }
        char result = signature.charAt(0);
        return LINKER.downcallHandle(symbol, result == 'V' ? FunctionDescriptor.ofVoid(arguments)
            : FunctionDescriptor.of(layout(result), arguments));
    }

    private static MemoryLayout layout(char letter) {
        return switch (letter) {
            case 'P' -> JAVA_LONG;
            case 'S' -> ADDRESS;
            case 'I' -> JAVA_INT;
            case 'D' -> JAVA_DOUBLE;
            default -> JAVA_BYTE;
        };
    }

    private ForeignCalls() {}

    /** Loads the library and finds its functions, which the first call of anything here does. */
    static void load() {}
}
