//! TLS by rustls.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::options::Tls;
use crate::server::StartError;

/// What takes connections with a certificate.
pub(crate) fn acceptor(tls: &Tls) -> Result<TlsAcceptor, StartError> {
    let failed = |path: &std::path::Path, error: &dyn std::fmt::Display| StartError::Tls {
        path: path.to_owned(),
        message: error.to_string(),
    };
    let certificates = CertificateDer::pem_file_iter(&tls.certificates)
        .and_then(|all| all.collect::<Result<Vec<_>, _>>())
        .map_err(|error| failed(&tls.certificates, &error))?;
    let key = PrivateKeyDer::from_pem_file(&tls.key).map_err(|error| failed(&tls.key, &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| {
            builder
                .with_no_client_auth()
                .with_single_cert(certificates, key)
        })
        .map_err(|error| failed(&tls.certificates, &error))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
