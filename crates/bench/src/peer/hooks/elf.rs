//! Redirects the calls that one loaded library makes to other libraries.
//!
//! A library calls a foreign function through a slot of its own, which the dynamic linker has
//! filled with the function's address. [`redirect`] puts another address there. Only the calls of
//! this one library change: the rest of the process, Rust's standard library included, has slots of
//! its own.
//!
//! 1. `dl_iterate_phdr` finds the library by an address inside of it.
//! 2. Its dynamic section names the tables of symbols, names and relocations ([`Tables`]).
//! 3. Each relocation that fills a slot for one of the wanted names tells where the slot is.
//! 4. The slot's page is made writable, and read-only again where the linker had left it so.
#![expect(unsafe_code, reason = "the dynamic linker's tables in memory")]

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::io;

/// A function's name, and the function to call instead.
pub(in crate::peer) type Hook = (&'static str, *const ());

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_GNU_RELRO: u32 = 0x6474_e552;

const DT_NULL: i64 = 0;
const DT_PLTRELSZ: i64 = 2;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;
const DT_JMPREL: i64 = 23;

/// The kinds of relocations that fill a slot: GLOB_DAT and JUMP_SLOT.
#[cfg(target_arch = "x86_64")]
const SLOTS: [u64; 2] = [6, 7];
#[cfg(not(target_arch = "x86_64"))]
const SLOTS: [u64; 2] = [1025, 1026];

#[repr(C)]
struct Dynamic {
    tag: i64,
    value: usize,
}

#[repr(C)]
struct Relocation {
    offset: usize,
    info: u64,
    addend: i64,
}

#[repr(C)]
struct Symbol {
    name: u32,
    rest: [u32; 5],
}

/// The search for the slots of a library, and its result.
struct Search<'a> {
    inside: usize,
    hooks: &'a [Hook],
    /// Slots by the name of their function.
    redirected: BTreeMap<&'static str, usize>,
    failed: Option<io::Error>,
}

/// Redirects the calls of the library that has the address `inside` to `hooks`; returns how many
/// slots of each name were changed.
///
/// # Errors
/// If a slot's page cannot be made writable.
///
/// # Safety
/// Each hook is a function with the signature of the one that it replaces. No other thread runs in
/// the library.
pub(super) unsafe fn redirect(
    inside: *const c_void,
    hooks: &[Hook],
) -> io::Result<BTreeMap<&'static str, usize>> {
    let inside = inside.addr();
    let mut search = Search { inside, hooks, redirected: BTreeMap::new(), failed: None };
    // SAFETY: the callback gets the search, which outlives the call, and is used by it alone.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.failed.map_or(Ok(search.redirected), Err)
}

/// Visits one loaded object. Ends the iteration at the wanted one.
unsafe extern "C" fn visit(
    object: *mut libc::dl_phdr_info,
    _size: usize,
    search: *mut c_void,
) -> c_int {
    // SAFETY: the linker passes a valid object, and `redirect` its search.
    let (object, search) = unsafe { (&*object, &mut *search.cast::<Search<'_>>()) };
    let base = object.dlpi_addr as usize;
    // SAFETY: the object has this many headers there.
    let headers = unsafe { std::slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into()) };
    let range = |header: &libc::Elf64_Phdr| {
        let begin = base.wrapping_add(header.p_vaddr as usize);
        begin..begin.wrapping_add(header.p_memsz as usize)
    };
    let found = |kind| headers.iter().find(move |header| header.p_type == kind);
    let mut loaded = headers.iter().filter(|header| header.p_type == PT_LOAD);
    if !loaded.any(|header| range(header).contains(&search.inside)) {
        return 0;
    }
    let read_only = found(PT_GNU_RELRO).map_or(0..0, range);
    if let Some(dynamic) = found(PT_DYNAMIC) {
        // SAFETY: the dynamic section of a loaded object lies there.
        let tables = unsafe { Tables::read(base, range(dynamic).start) };
        // SAFETY: the tables are those of the object.
        if let Err(error) = unsafe { tables.patch(base, &read_only, search) } {
            search.failed = Some(error);
        }
    }
    1
}

/// The tables of a loaded object, as addresses.
#[derive(Default)]
struct Tables {
    symbols: usize,
    names: usize,
    /// The addresses and sizes of the two relocation tables.
    relocations: [(usize, usize); 2],
}

impl Tables {
    /// # Safety
    /// `dynamic` is the address of the dynamic section of the object loaded at `base`.
    unsafe fn read(base: usize, dynamic: usize) -> Tables {
        let mut tables = Tables::default();
        // glibc has added the base to these addresses; other linkers have not.
        let whole = |value: usize| if value < base { base.wrapping_add(value) } else { value };
        let mut entry = dynamic as *const Dynamic;
        // SAFETY: the section ends with DT_NULL.
        unsafe {
            while (*entry).tag != DT_NULL {
                let value = (*entry).value;
                match (*entry).tag {
                    DT_SYMTAB => tables.symbols = whole(value),
                    DT_STRTAB => tables.names = whole(value),
                    DT_RELA => tables.relocations[0].0 = whole(value),
                    DT_RELASZ => tables.relocations[0].1 = value,
                    DT_JMPREL => tables.relocations[1].0 = whole(value),
                    DT_PLTRELSZ => tables.relocations[1].1 = value,
                    _ => {}
                }
                entry = entry.add(1);
            }
        }
        tables
    }

    /// # Safety
    /// The tables are those of the object loaded at `base`.
    unsafe fn patch(
        &self,
        base: usize,
        read_only: &std::ops::Range<usize>,
        search: &mut Search<'_>,
    ) -> io::Result<()> {
        if self.symbols == 0 || self.names == 0 {
            return Ok(());
        }
        for (begin, bytes) in self.relocations {
            for at in 0..bytes / size_of::<Relocation>() {
                // SAFETY: the tables are as long as the dynamic section says; a name ends in NUL.
                let (relocation, name) = unsafe {
                    let relocation = &*(begin as *const Relocation).add(at);
                    let symbol =
                        &*(self.symbols as *const Symbol).add((relocation.info >> 32) as usize);
                    let name = (self.names as *const c_char).add(symbol.name as usize);
                    (relocation, CStr::from_ptr(name).to_bytes())
                };
                let hook = search.hooks.iter().find(|(hook, _)| hook.as_bytes() == name);
                let Some((hook, function)) = hook else { continue };
                if SLOTS.contains(&(relocation.info & 0xffff_ffff)) {
                    let slot = base.wrapping_add(relocation.offset);
                    // SAFETY: the slot is the object's, for a function of the hook's signature.
                    unsafe { fill(slot, function.addr(), read_only.contains(&slot))? };
                    *search.redirected.entry(hook).or_default() += 1;
                }
            }
        }
        Ok(())
    }
}

/// Writes `address` into a slot.
///
/// # Safety
/// The slot is a pointer to a function in a loaded object, and is not read meanwhile.
unsafe fn fill(slot: usize, address: usize, read_only: bool) -> io::Result<()> {
    let page = rustix::param::page_size();
    let begin = (slot & !(page - 1)) as *mut c_void;
    let protect = |how| {
        // SAFETY: the page is the object's; it stays readable, and nothing runs from it.
        match unsafe { libc::mprotect(begin, page, how) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    protect(libc::PROT_READ | libc::PROT_WRITE)?;
    // SAFETY: as the caller promises; the page is writable now. A slot is aligned.
    unsafe { (slot as *mut usize).write_volatile(address) };
    if read_only { protect(libc::PROT_READ) } else { Ok(()) }
}
