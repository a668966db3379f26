//! The properties of records as text.

use super::bytes::*;
use super::*;

const FORMATS: [Format; 3] = [Format::Tsv, Format::Csv, Format::Jsonl];
const ENCODINGS: [Encoding; 3] = [Encoding::Text, Encoding::Hex, Encoding::Base64];

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

fn written(pairs: &Pairs, format: Format, encoding: Encoding) -> Vec<u8> {
    let mut writer = RecordWriter::new(Vec::new(), format, encoding);
    for (key, value) in pairs {
        writer.write(key, value).unwrap();
    }
    writer.finish().unwrap()
}

fn read(text: &[u8], format: Format, encoding: Encoding) -> Result<Pairs, ReadError> {
    let mut reader = RecordReader::new(text, format, encoding);
    let mut pairs = Vec::new();
    while let Some(record) = reader.next()? {
        pairs.push((record.key.to_vec(), record.value.to_vec()));
    }
    assert_eq!(reader.bytes_read(), text.len() as u64);
    Ok(pairs)
}

fn malformed(text: &str, format: Format) -> (u64, String) {
    match read(text.as_bytes(), format, Encoding::Text) {
        Err(ReadError::Malformed { line, what }) => (line, what),
        other => panic!("{text:?}: {other:?}"),
    }
}

fn pair(key: &str, value: &str) -> (Vec<u8>, Vec<u8>) {
    (key.as_bytes().to_vec(), value.as_bytes().to_vec())
}

/// A small generator of random numbers, so that a seed repeats a failure.
fn random(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}

#[test]
fn any_bytes_come_back_in_every_format_and_encoding() {
    let mut seed = 0x5EED_0001;
    let awkward = [
        &b""[..],
        b"\t",
        b"\n",
        b"\r\n",
        b"\"",
        b",",
        b"\\",
        b"\\x41",
        b"\0",
        b"\xFF\xFE",
        "\u{FEFF}bom".as_bytes(),
        "é✓".as_bytes(),
        b" ",
        b"=",
        b"\xEF\xBB",
        b"\"\"",
        b"\x7F",
        b"a\r",
    ];
    for round in 0..200 {
        let first = seed;
        let mut bytes = || {
            let mut bytes = Vec::new();
            for _ in 0..random(&mut seed) % 6 {
                match random(&mut seed) % 3 {
                    0 => bytes.push(random(&mut seed).to_le_bytes()[0]),
                    1 => bytes.extend_from_slice(b"plain"),
                    _ => {
                        let at = random(&mut seed) as usize % awkward.len();
                        bytes.extend_from_slice(awkward[at]);
                    }
                }
            }
            bytes
        };
        let pairs: Pairs = (0..8).map(|_| (bytes(), bytes())).collect();
        for format in FORMATS {
            for encoding in ENCODINGS {
                let text = written(&pairs, format, encoding);
                let back = read(&text, format, encoding);
                let shown = text.escape_ascii();
                assert_eq!(
                    back.expect("readable"),
                    pairs,
                    "round {round} seed {first:#x} {format:?} {encoding:?}: {shown}"
                );
            }
        }
    }
}

#[test]
fn awkward_records_alone_come_back_too() {
    // Each text is at the start of a file, where a byte order mark would be dropped.
    for bytes in [&b""[..], BOM, b"\xEF\xBB\xBFx", b"\r", b"\n", b"#", b"{", b"\""] {
        for format in FORMATS {
            let pairs = vec![(bytes.to_vec(), bytes.to_vec())];
            let text = written(&pairs, format, Encoding::Text);
            let back = read(&text, format, Encoding::Text).expect("readable");
            assert_eq!(back, pairs, "{format:?} {}", text.escape_ascii());
        }
    }
}

#[test]
fn numbers_come_back_beside_values_of_another_type_and_other_bytes_are_refused() {
    let pairs: Pairs = [0, 1, 255, u64::MAX]
        .map(|number: u64| (number.to_be_bytes().to_vec(), vec![0xFF, number as u8]))
        .into();
    for format in FORMATS {
        let mut writer =
            RecordWriter::new(Vec::new(), format, Encoding::U64).with_values(Encoding::Hex);
        pairs.iter().for_each(|(key, value)| writer.write(key, value).unwrap());
        let error = writer.write(b"short", b"").unwrap_err().to_string();
        assert!(
            error.starts_with("key: 5 bytes, and a u64 has 8") && error.ends_with("short"),
            "{error}"
        );
        let text = writer.finish().unwrap();
        let mut reader =
            RecordReader::new(&text[..], format, Encoding::U64).with_values(Encoding::Hex);
        for (key, value) in &pairs {
            let record = reader.next().unwrap().unwrap();
            assert_eq!((record.key, record.value), (&key[..], &value[..]), "{format:?}");
        }
        assert!(reader.next().unwrap().is_none());
    }
    for wrong in ["", "-1", "+1", "1.0", "x", "18446744073709551616"] {
        let text = format!("{wrong}\t00\n");
        let mut reader = RecordReader::new(text.as_bytes(), Format::Tsv, Encoding::U64);
        assert!(matches!(reader.next(), Err(ReadError::Malformed { line: 1, .. })), "{wrong}");
    }
}

#[test]
fn files_of_others_are_read() {
    let expected = vec![pair("a", "1"), pair("b", "2")];
    for (text, format) in [
        ("a\t1\nb\t2\n", Format::Tsv),
        ("a\t1\r\nb\t2", Format::Tsv),
        ("\u{FEFF}a\t1\n\n\nb\t2\n\r\n", Format::Tsv),
        ("a,1\r\nb,2\r\n", Format::Csv),
        ("\"a\",\"1\"\nb,\"2\"", Format::Csv),
        (
            "{\"key\":\"a\",\"value\":\"1\"}\n {\"value\":\"2\" , \"key\" : \"\\u0062\"}\n",
            Format::Jsonl,
        ),
        (
            "{\"key_hex\":\"61\",\"value_base64\":\"MQ==\"}\n{\"key\":\"b\",\"value\":\"2\"}",
            Format::Jsonl,
        ),
    ] {
        let back = read(text.as_bytes(), format, Encoding::Text).expect("readable");
        assert_eq!(back, expected, "{text:?}");
    }
    let quoted = read(b"\"a\r\nb\",\"say \"\"hi\"\", then\n\"\n", Format::Csv, Encoding::Text);
    assert_eq!(quoted.expect("readable"), [pair("a\r\nb", "say \"hi\", then\n")]);
    let tabs = read(b"a\t1\t2\n", Format::Tsv, Encoding::Text);
    assert_eq!(tabs.expect("readable"), [pair("a", "1\t2")]);
}

#[test]
fn backslashes_are_themselves_without_escapes() {
    let mut reader = RecordReader::new(&b"C:\\new\tx\n"[..], Format::Tsv, Encoding::Text);
    reader = reader.without_escapes();
    let record = reader.next().unwrap().unwrap();
    assert_eq!((record.key, record.value, record.line), (&b"C:\\new"[..], &b"x"[..], 1));
}

#[test]
fn what_is_no_record_is_refused_with_its_line() {
    for (text, format, line, what) in [
        ("a\t1\nb 2\n", Format::Tsv, 2, "no tab"),
        ("a\t1\n\nb\t\\q\n", Format::Tsv, 3, "value: \\q is not an escape"),
        ("\\x4\tb\n", Format::Tsv, 1, "key: \\x must be followed"),
        ("a\tb\\", Format::Tsv, 1, "a backslash at the end"),
        ("a,1\nb\n", Format::Csv, 2, "one field"),
        ("a,1,2\n", Format::Csv, 1, "more fields"),
        ("a,b\"c\"\n", Format::Csv, 1, "a quote inside"),
        ("a,\"b\"c\n", Format::Csv, 1, "after the closing quote"),
        ("x,y\n\"a\nb\nc,d\n", Format::Csv, 2, "not closed"),
        ("\"a\nb\",c\nd\n", Format::Csv, 3, "one field"),
        ("{\"key\":\"a\",\"value\":\"1\"}\n{\"key\":\"a\"}\n", Format::Jsonl, 2, "value: missing"),
        ("{\"key\":1,\"value\":\"1\"}\n", Format::Jsonl, 1, "column 8"),
        ("{\"key\":\"a\",\"value\":\"1\"", Format::Jsonl, 1, "column 22"),
        (
            "{\"key\":\"a\",\"key_hex\":\"61\",\"value\":\"\"}",
            Format::Jsonl,
            1,
            "more than one way",
        ),
        ("{\"key_hex\":\"6\",\"value\":\"\"}", Format::Jsonl, 1, "key: an odd number"),
        ("{\"key\":\"a\",\"vale\":\"1\"}", Format::Jsonl, 1, "unknown field `vale`"),
        ("nonsense", Format::Jsonl, 1, "column"),
    ] {
        let (at, says) = malformed(text, format);
        assert_eq!(at, line, "{text:?}: {says}");
        assert!(says.contains(what), "{text:?}: {says}");
    }
}

#[test]
fn encodings_refuse_what_they_do_not_write() {
    let mut out = Vec::new();
    for text in ["a", "0g", "é"] {
        assert!(from_hex(text.as_bytes(), &mut out).is_err(), "{text}");
    }
    for text in ["QQ", "QQ=", "Q===", "QR==", "QUJ=", "QQ==QQ==", "Q Q=", "====", "QUI=x"] {
        assert!(from_base64(text.as_bytes(), &mut out).is_err(), "{text}");
    }
    out.clear();
    from_base64(b"aGVsbG8gd29ybGQ=", &mut out).unwrap();
    assert_eq!(out, b"hello world");
}

#[test]
fn a_name_promises_a_format() {
    assert_eq!(Format::of_name("x/books.tsv"), Some(Format::Tsv));
    assert_eq!(Format::of_name("BOOKS.CSV"), Some(Format::Csv));
    assert_eq!(Format::of_name("a.ndjson"), Some(Format::Jsonl));
    assert_eq!(Format::of_name("books"), None);
}
