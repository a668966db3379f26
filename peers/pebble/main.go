// pebble for `sateen bench --peer`: the functions that peer.c calls. A process has one database.
//
// Memory of Go never passes to C: values are copied into buffers of C, and errors are texts from
// malloc, or null.
package main

/*
#cgo CFLAGS: -std=gnu11 -O2
#include <stdlib.h>
#include "../sateen_peer.h"
*/
import "C"

import (
	"fmt"
	"os"
	"runtime/cgo"
	"runtime/debug"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cockroachdb/pebble/v2"
)

const module = "github.com/cockroachdb/pebble/v2"

// Background work counts as at rest if nothing runs at this many looks in a row.
const looks = 5
const betweenLooks = 20 * time.Millisecond

var (
	database *pebble.DB
	cache    *pebble.Cache
	stalls   atomic.Uint64
	stallNs  atomic.Uint64
)

// silent drops the messages of pebble, but for one after which it cannot go on.
type silent struct{}

func (silent) Infof(string, ...interface{})  {}
func (silent) Errorf(string, ...interface{}) {}
func (silent) Fatalf(format string, arguments ...interface{}) {
	fmt.Fprintf(os.Stderr, "pebble: "+format+"\n", arguments...)
	os.Exit(1)
}

func text(err error) *C.char {
	if err == nil {
		return nil
	}
	return C.CString(err.Error())
}

// caught turns a panic into an error.
func caught(result **C.char) {
	if panicked := recover(); panicked != nil {
		*result = C.CString(fmt.Sprintf("pebble panicked: %v", panicked))
	}
}

func bytes(data unsafe.Pointer, length C.size_t) []byte {
	return unsafe.Slice((*byte)(data), int(length))
}

func durability(sync C.int) *pebble.WriteOptions {
	if sync != 0 {
		return pebble.Sync
	}
	return pebble.NoSync
}

//export pebbleVersion
func pebbleVersion() *C.char {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dependency := range info.Deps {
			if dependency.Path == module {
				return C.CString("pebble " + dependency.Version[1:])
			}
		}
	}
	return C.CString("pebble")
}

//export pebbleOpen
func pebbleOpen(directory, given *C.char) (result *C.char) {
	defer caught(&result)
	if database != nil {
		return text(fmt.Errorf("a process opens one database only"))
	}
	settings, err := parse(C.GoString(given))
	if err != nil {
		return text(err)
	}
	var begun atomic.Int64
	options := &pebble.Options{
		FormatMajorVersion: pebble.FormatNewest,
		Logger:             silent{},
		EventListener: &pebble.EventListener{
			WriteStallBegin: func(pebble.WriteStallBeginInfo) {
				stalls.Add(1)
				begun.Store(time.Now().UnixNano())
			},
			WriteStallEnd: func() { stallNs.Add(uint64(time.Now().UnixNano() - begun.Load())) },
		},
	}
	if err := settings.apply(options); err != nil {
		return text(err)
	}
	cache = options.Cache
	opened, err := pebble.Open(C.GoString(directory), options)
	if err == nil {
		database = opened
	}
	return text(err)
}

//export pebbleClose
func pebbleClose() (result *C.char) {
	defer caught(&result)
	err := database.Close()
	if cache != nil {
		cache.Unref()
	}
	database, cache = nil, nil
	return text(err)
}

//export pebblePut
func pebblePut(
	key unsafe.Pointer, keyLength C.size_t, value unsafe.Pointer, valueLength C.size_t, sync C.int,
) (result *C.char) {
	defer caught(&result)
	return text(database.Set(bytes(key, keyLength), bytes(value, valueLength), durability(sync)))
}

//export pebbleDelete
func pebbleDelete(key unsafe.Pointer, keyLength C.size_t, sync C.int) (result *C.char) {
	defer caught(&result)
	return text(database.Delete(bytes(key, keyLength), durability(sync)))
}

//export pebbleWrite
func pebbleWrite(changes *C.sateen_peer_change, count C.size_t, sync C.int) (result *C.char) {
	defer caught(&result)
	batch := database.NewBatch()
	defer batch.Close()
	for _, change := range unsafe.Slice(changes, int(count)) {
		entry := change.entry
		key := bytes(unsafe.Pointer(entry.key), entry.key_length)
		var err error
		if change.is_delete != 0 {
			err = batch.Delete(key, nil)
		} else {
			err = batch.Set(key, bytes(unsafe.Pointer(entry.value), entry.value_length), nil)
		}
		if err != nil {
			return text(err)
		}
	}
	return text(batch.Commit(durability(sync)))
}

//export pebbleGet
func pebbleGet(
	key unsafe.Pointer, keyLength C.size_t, buffer unsafe.Pointer, capacity C.size_t,
	length *C.size_t, result **C.char,
) C.int {
	defer caught(result)
	value, closer, err := database.Get(bytes(key, keyLength))
	if err == pebble.ErrNotFound {
		return 0
	}
	if err != nil {
		*result = text(err)
		return 0
	}
	*length = C.size_t(len(value))
	if *length <= capacity {
		copy(bytes(buffer, capacity), value)
	}
	*result = text(closer.Close())
	return 1
}

//export pebbleSeek
func pebbleSeek(
	handle *C.uintptr_t, key unsafe.Pointer, keyLength C.size_t, buffer *unsafe.Pointer,
	capacity *C.size_t, lengths *C.size_t, result **C.char,
) C.int {
	defer caught(result)
	if *handle != 0 {
		if *result = pebbleEnd(*handle); *result != nil {
			*handle = 0
			return 0
		}
		*handle = 0
	}
	iterator, err := database.NewIter(nil)
	if err != nil {
		*result = text(err)
		return 0
	}
	*handle = C.uintptr_t(cgo.NewHandle(iterator))
	return entry(iterator, iterator.SeekGE(bytes(key, keyLength)), buffer, capacity, lengths, result)
}

//export pebbleNext
func pebbleNext(
	handle C.uintptr_t, buffer *unsafe.Pointer, capacity *C.size_t, lengths *C.size_t,
	result **C.char,
) C.int {
	defer caught(result)
	iterator := cgo.Handle(handle).Value().(*pebble.Iterator)
	return entry(iterator, iterator.Next(), buffer, capacity, lengths, result)
}

// entry copies the entry of an iterator, if there is one, into the buffer, which it makes larger.
func entry(
	iterator *pebble.Iterator, found bool, buffer *unsafe.Pointer, capacity *C.size_t,
	lengths *C.size_t, result **C.char,
) C.int {
	if !found {
		*result = text(iterator.Error())
		return 0
	}
	value, err := iterator.ValueAndErr()
	if err != nil {
		*result = text(err)
		return 0
	}
	key := iterator.Key()
	wanted := C.size_t(len(key) + len(value))
	if *buffer == nil || *capacity < wanted {
		larger := C.realloc(*buffer, wanted+1)
		if larger == nil {
			*result = text(fmt.Errorf("no memory for an entry of %d bytes", wanted))
			return 0
		}
		*buffer, *capacity = larger, wanted+1
	}
	to := bytes(*buffer, *capacity)
	copy(to, key)
	copy(to[len(key):], value)
	both := unsafe.Slice(lengths, 2)
	both[0], both[1] = C.size_t(len(key)), C.size_t(len(value))
	return 1
}

//export pebbleEnd
func pebbleEnd(handle C.uintptr_t) (result *C.char) {
	defer caught(&result)
	iterator := cgo.Handle(handle).Value().(*pebble.Iterator)
	cgo.Handle(handle).Delete()
	return text(iterator.Close())
}

//export pebbleFlush
func pebbleFlush() (result *C.char) {
	defer caught(&result)
	return text(database.Flush())
}

//export pebbleWaitIdle
func pebbleWaitIdle() {
	for idle := 0; idle < looks; {
		metrics := database.Metrics()
		if metrics.Compact.NumInProgress+metrics.Flush.NumInProgress > 0 {
			idle = 0
		} else {
			idle++
		}
		time.Sleep(betweenLooks)
	}
}

//export pebbleCount
func pebbleCount(figures *C.sateen_peer_figures) {
	metrics := database.Metrics()
	var flushed, read, compacted uint64
	for i := range metrics.Levels {
		level := &metrics.Levels[i]
		flushed += level.TableBytesFlushed
		read += level.TableBytesRead
		compacted += level.TableBytesCompacted
	}
	figures.flush_written = C.uint64_t(flushed)
	figures.compaction_read = C.uint64_t(read)
	figures.compaction_written = C.uint64_t(compacted)
	figures.stalls = C.uint64_t(stalls.Load())
	figures.stall_ns = C.uint64_t(stallNs.Load())
	figures.memtable_bytes = C.uint64_t(metrics.MemTable.Size)
	figures.cache_bytes = C.uint64_t(metrics.BlockCache.Size)
	figures.debt_bytes = C.uint64_t(metrics.Compact.EstimatedDebt)
	figures.running_jobs = C.uint64_t(metrics.Compact.NumInProgress + metrics.Flush.NumInProgress)
}

func main() {}
