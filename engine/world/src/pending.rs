//! What a world gives back for something that takes time.

use std::future::Future;
use std::pin::Pin;

/// Something that a world will finish: boxed, because worlds are chosen at run time.
pub type Pending<T> = Pin<Box<dyn Future<Output = T> + Send + 'static>>;

/// A future in the box that it is made in. `Box::pin` of one that was made elsewhere copies it as a whole, kilobytes of
/// which nothing is set yet.
pub fn boxed<F: Future>(make: impl FnOnce() -> F) -> Pin<Box<F>> {
    Box::into_pin(Box::write(Box::new_uninit(), make()))
}

/// A future whose code is compiled once, in the crate of the function that returns it. That of an `async fn` is compiled in
/// each crate that awaits it, with all that it awaits itself: a program that only opened a pool compiled its sync and its
/// scrub. For what is done seldom: it costs an allocation.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
