//! zap.
