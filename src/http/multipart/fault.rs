//! Why a body is no form, in words for the person who wrote the client.

use std::fmt;

use super::{PART_HEAD_BYTES_MAX, PARTS_MAX};

/// Why a body is no form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MultipartFault {
    /// There is no delimiter in it.
    NoStart,
    /// It ends before the last delimiter.
    NoEnd,
    /// It has more than [`PARTS_MAX`] parts.
    TooManyParts,
    /// One of its parts is malformed.
    Part {
        /// Which one, counted from 1.
        part: usize,
        /// What is wrong with it.
        fault: PartFault,
    },
}

/// Why a part is none of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartFault {
    /// No empty line ends its head.
    HeadOpen,
    /// Its head is longer than [`PART_HEAD_BYTES_MAX`].
    HeadTooLong,
    /// Its head is not UTF-8.
    NotUtf8,
    /// A line of its head is no field.
    HeadLine,
    /// A field or parameter comes twice.
    Twice(&'static str),
    /// It has no Content-Disposition.
    NoDisposition,
    /// Its Content-Disposition is another one than `form-data`.
    NotFormData,
    /// The parameters of its Content-Disposition are malformed.
    Parameters,
    /// It has no name.
    NoName,
    /// The file's name is only given as a `filename*` that is not in UTF-8.
    FileNameCoding,
    /// Its content is encoded.
    Encoded,
}

impl fmt::Display for MultipartFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MultipartFault::NoStart => f.write_str(
                "the form has no part: begin each one with a line of two dashes and the boundary that the \
                 Content-Type names, and end lines in CR LF",
            ),
            MultipartFault::NoEnd => f.write_str(
                "the form is not complete: end it with a line of two dashes, the boundary and two dashes",
            ),
            MultipartFault::TooManyParts => {
                write!(f, "the form has more than {PARTS_MAX} parts: send fewer files at once")
            }
            MultipartFault::Part { part, fault } => write!(f, "part {part} of the form {fault}"),
        }
    }
}

impl fmt::Display for PartFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PartFault::HeadOpen => "has a head that does not end: put an empty line before the content",
            PartFault::HeadTooLong => {
                return write!(
                    f,
                    "has a head of more than {PART_HEAD_BYTES_MAX} bytes: shorten its names, and put an empty line \
                     before the content"
                );
            }
            PartFault::NotUtf8 => "has a head that is not UTF-8: encode its names as UTF-8",
            PartFault::HeadLine => {
                "has a line in its head that is no 'Name: value': write each field on one line, without control \
                 characters"
            }
            PartFault::Twice(field) => return write!(f, "has its {field} twice: send it once"),
            PartFault::NoDisposition => {
                "has no Content-Disposition: send 'Content-Disposition: form-data; name=\"…\"'"
            }
            PartFault::NotFormData => {
                "has a Content-Disposition other than form-data: send 'Content-Disposition: form-data; name=\"…\"'"
            }
            PartFault::Parameters => {
                "has a malformed Content-Disposition: write each parameter as 'name=\"value\"', with semicolons \
                 between them and a quote in a value as %22"
            }
            PartFault::NoName => "has no name: add 'name=\"…\"' to its Content-Disposition",
            PartFault::FileNameCoding => {
                "has a filename* that is not in UTF-8: send the name as 'filename=\"…\"' instead"
            }
            PartFault::Encoded => {
                "has a Content-Transfer-Encoding: send the content as it is, without that field"
            }
        })
    }
}

impl std::error::Error for MultipartFault {}
