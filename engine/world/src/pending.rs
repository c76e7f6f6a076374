//! What a world gives back for something that takes time.

use std::future::Future;
use std::pin::Pin;

/// Something that a world will finish: boxed, because worlds are chosen at run time.
pub type Pending<T> = Pin<Box<dyn Future<Output = T> + Send + 'static>>;
