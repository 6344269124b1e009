//! TLS and credentials files: what is accepted, and errors that say what to do.

// Addresses of the loopback interface and processes that end with their parent are as Linux has them.
#![cfg(target_os = "linux")]

mod common;

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::roles::{cluster, empty_run, run_with};
use common::{GATE, Server, skipped};
use data_encoding::BASE64URL_NOPAD;
use heist_cluster::{ClusterBuilder, ClusterError};
use nkeys::KeyPair;
use serde_json::{Value, json};

/// Makes a certificate with the key in `NAME.key`, signed by an authority or by itself.
fn certificate(folder: &Path, name: &str, authority: Option<&str>, extensions: &[&str]) {
    let file = |name: &str, end: &str| folder.join(format!("{name}.{end}"));
    let mut command = Command::new("openssl");
    command.args([
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
    ]);
    command.args(["-days", "2", "-subj", &format!("/CN={name}"), "-keyout"]);
    command.arg(file(name, "key")).arg("-out").arg(file(name, "pem"));
    if let Some(authority) = authority {
        command.arg("-CA").arg(file(authority, "pem")).arg("-CAkey").arg(file(authority, "key"));
    }
    for extension in extensions {
        command.args(["-addext", extension]);
    }
    let output = command.output().expect("the program openssl");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Starts a server with TLS. Its folder has its authority `ca`, another one, and the certificate `node`.
fn tls_server(more: &str) -> Option<Server> {
    let openssl = Command::new("openssl").arg("version").stdout(Stdio::null()).status();
    let required = std::env::var("HEIST_CLUSTER_TESTS").is_ok_and(|value| value == "required");
    if !openssl.is_ok_and(|status| status.success()) {
        assert!(!required, "there is no openssl, which makes the certificates");
        skipped("there is no openssl, which makes the certificates");
        return None;
    }
    let config = |folder: &Path, host: Ipv4Addr| {
        for name in ["ca", "other"] {
            certificate(folder, name, None, &[]);
        }
        let address = format!("subjectAltName=IP:{host}");
        let usage = "extendedKeyUsage=serverAuth,clientAuth";
        certificate(folder, "node", Some("ca"), &["basicConstraints=CA:FALSE", &address, usage]);
        let file = |name: &str| folder.join(name).display().to_string();
        let (cert, key, ca) = (file("node.pem"), file("node.key"), file("ca.pem"));
        format!(
            "jetstream: {{}}\ntls {{ cert_file: {cert:?}, key_file: {key:?}, ca_file: {ca:?}, {more} }}"
        )
    };
    Server::start_with(&[], config)
}

/// Runs the job with a worker that has the settings of these variables.
fn run_with_worker(server: &Server, settings: ClusterBuilder, variables: &[(&str, &str)]) {
    let _worker = server.worker_at(&server.url(), "a", variables);
    let report = run_with(settings, || {
        server.wait_for_start("a", Some(GATE));
        server.open_gate();
    });
    assert_eq!(report.nodes.keys().collect::<Vec<_>>(), ["a"]);
}

fn refusal(settings: ClusterBuilder) -> ClusterError {
    empty_run(&settings.build().expect("settings")).expect_err("a refusal")
}

fn assert_tls(error: &ClusterError, advice: &str) {
    assert!(matches!(error, ClusterError::Tls { .. }), "{error}");
    assert!(error.to_string().contains(advice), "{error}");
}

#[test]
fn a_run_is_encrypted_and_another_authority_is_refused() {
    let Some(server) = tls_server("") else { return };
    let ca = server.note("ca.pem");
    assert_tls(
        &refusal(cluster(&server.url()).authority(server.note("other.pem"))),
        "HEIST_CLUSTER_CA",
    );
    assert_tls(&refusal(cluster(&server.url())), "HEIST_CLUSTER_CA");
    let variables = [("HEIST_CLUSTER_CA", ca.to_str().expect("a path"))];
    run_with_worker(&server, cluster(&server.url()).authority(&ca), &variables);
}

#[test]
fn a_server_asks_for_a_certificate() {
    let Some(server) = tls_server("verify: true") else { return };
    let file = |name: &str| server.note(name);
    let settings = || cluster(&server.url()).authority(file("ca.pem"));
    assert_tls(&refusal(settings()), "HEIST_CLUSTER_CERT");
    assert_tls(
        &refusal(settings().certificate(file("other.pem"), file("other.key"))),
        "HEIST_CLUSTER_CERT",
    );
    let (ca, node, key) = (file("ca.pem"), file("node.pem"), file("node.key"));
    let variables = [
        ("HEIST_CLUSTER_CA", ca.to_str().expect("a path")),
        ("HEIST_CLUSTER_CERT", node.to_str().expect("a path")),
        ("HEIST_CLUSTER_KEY", key.to_str().expect("a path")),
    ];
    run_with_worker(&server, settings().certificate(&node, &key), &variables);
}

#[test]
fn a_server_without_tls_is_refused_if_there_is_an_authority() {
    let Some(tls) = tls_server("") else { return };
    let Some(server) = Server::start(&["-js"], "") else { return };
    assert_tls(&refusal(cluster(&server.url()).authority(tls.note("ca.pem"))), "no TLS connection");
}

/// Returns a token about a key that another one has signed.
fn token(signer: &KeyPair, subject: &KeyPair, claims: Value) -> String {
    let encoded = |value: &Value| BASE64URL_NOPAD.encode(value.to_string().as_bytes());
    let head = encoded(&json!({"typ": "JWT", "alg": "ed25519-nkey"}));
    let body = encoded(&json!({
        "jti": subject.public_key(), "iat": 1, "name": "test",
        "iss": signer.public_key(), "sub": subject.public_key(), "nats": claims,
    }));
    let text = format!("{head}.{body}");
    let signature = BASE64URL_NOPAD.encode(&signer.sign(text.as_bytes()).expect("a signature"));
    format!("{text}.{signature}")
}

/// An operator with an account, whose users have credentials files.
struct Operator {
    key: KeyPair,
    account: KeyPair,
}

impl Operator {
    fn new() -> Self {
        Self { key: KeyPair::new_operator(), account: KeyPair::new_account() }
    }

    fn config(&self) -> String {
        let system = KeyPair::new_account();
        let limits = json!({"subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1,
            "wildcards": true, "conn": -1, "leaf": -1, "mem_storage": -1, "disk_storage": -1,
            "streams": -1, "consumer": -1});
        let none = json!({"subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1,
            "wildcards": true, "conn": -1, "leaf": -1});
        let of = |account: &KeyPair, limits: &Value| {
            token(&self.key, account, json!({"limits": limits, "type": "account", "version": 2}))
        };
        let claims =
            json!({"type": "operator", "version": 2, "system_account": system.public_key()});
        format!(
            "operator: {}\nsystem_account: {}\nresolver: MEMORY\nresolver_preload: {{ {}: \"{}\", {}: \"{}\" }}\njetstream: {{}}",
            token(&self.key, &self.key, claims),
            system.public_key(),
            self.account.public_key(),
            of(&self.account, &limits),
            system.public_key(),
            of(&system, &none),
        )
    }

    /// Writes the credentials file of a user who may publish on these subjects.
    fn user(&self, file: PathBuf, publish: &[&str]) -> PathBuf {
        let user = KeyPair::new_user();
        let claims = json!({"type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1,
            "pub": {"allow": publish}, "sub": {}});
        let (token, seed) = (token(&self.account, &user, claims), user.seed().expect("a seed"));
        let text = format!(
            "-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        );
        fs::write(&file, text).expect("a file");
        file
    }
}

#[test]
fn credentials_files_are_accepted_and_refused() {
    let operator = Operator::new();
    let Some(server) = Server::start(&[], &operator.config()) else { return };
    let settings = || cluster(&server.url());
    let stranger = Operator::new().user(server.note("stranger.creds"), &[">"]);
    let few = operator.user(server.note("few.creds"), &["heist.>"]);
    let broken = server.note("broken.creds");
    fs::write(&broken, "a password").expect("a file");
    let error = refusal(settings().credentials(stranger));
    assert!(matches!(error, ClusterError::Credentials { .. }), "{error}");
    assert!(error.to_string().contains("HEIST_CLUSTER_CREDENTIALS"), "{error}");
    let error = refusal(settings());
    assert!(matches!(error, ClusterError::Credentials { .. }), "{error}");
    let error = refusal(settings().credentials(few));
    assert!(matches!(error, ClusterError::Permission { .. }), "{error}");
    let error = refusal(settings().credentials(broken));
    assert!(matches!(error, ClusterError::Setting { name: "credentials", .. }), "{error}");
    let right = operator.user(server.note("right.creds"), &[">"]);
    let variables = [("HEIST_CLUSTER_CREDENTIALS", right.to_str().expect("a path"))];
    run_with_worker(&server, settings().credentials(&right), &variables);
}
