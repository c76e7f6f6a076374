//! TLS towards receivers: trusted is what this machine trusts (`SSL_CERT_FILE` may name others).

use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt;
use std::sync::Arc;

/// Read anew each time: what the machine trusts may change while the program runs.
pub(crate) fn config() -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(BuilderVerifierExt::with_platform_verifier)
        .map_err(|e| format!("this machine's certificates cannot be used: {e}"))?;
    Ok(Arc::new(config.with_no_client_auth()))
}
