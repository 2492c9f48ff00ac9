//! The tool as a model has it.

use hango_domain::tool::{Idempotency, Tool};
use hango_tools::HttpFetch;
use hango_tools::outbound::{Failure, Outbound, shown};
use serde_json::json;

use super::support::{AMPLE, Names, Reply, Server, call, policy, tool};

#[tokio::test]
async fn s67_nothing_but_a_url_and_a_number_of_bytes_is_taken() {
    let tool = HttpFetch::new(Outbound::new(policy(&[], &[]), AMPLE));

    let result = call(
        &tool,
        json!({"url": "http://good.example/", "method": "POST", "headers": {"host": "x"}, "body": "x"}),
    )
    .await;

    assert!(result.is_error);
    for name in ["method", "headers", "body"] {
        assert!(result.for_llm.contains(name), "{result:?}");
    }
    assert_eq!(tool.idempotency(), Idempotency::Safe);
}

#[tokio::test]
async fn s77_a_number_of_bytes_is_whole_and_not_nothing() {
    let tool = HttpFetch::new(Outbound::new(policy(&[], &[]), AMPLE));
    let url = "http://good.example/";

    for wrong in [json!(0), json!(-1), json!("64k"), json!(1.5), json!([1])] {
        let result = call(&tool, json!({"url": url, "max_bytes": wrong})).await;

        assert!(
            result.is_error && result.for_llm.contains("- /max_bytes: "),
            "{result:?}"
        );
    }
    for right in [json!(1), json!(1_000_000_000_000_000_000_u64), json!(null)] {
        let result = call(&tool, json!({"url": url, "max_bytes": right})).await;

        assert_eq!(result.for_llm, "blocked_host");
    }
}

#[tokio::test]
async fn s77_a_body_is_cut_at_its_default_and_at_its_most() {
    let names = Names::all(&["127.0.0.1"]);
    let endless = Reply::Endless(b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), vec![b'x'; 4096]);
    let server = Server::saying(endless).await;
    let host = format!("good.example:{}", server.port());
    let tool = tool(&[&host], &names);
    let url = format!("http://{host}/");

    let default = call(&tool, json!({"url": url})).await;
    let most = call(&tool, json!({"url": url, "max_bytes": u64::MAX})).await;

    for (result, bytes) in [(default, 65_536), (most, 262_144)] {
        let shown = result.for_llm.matches('x').count();
        assert_eq!(shown, bytes);
        let note = format!("x\n[cut off after {bytes} bytes]");
        assert!(result.for_llm.ends_with(&note));
    }
}

#[test]
fn s80_a_log_shows_a_url_without_its_query_and_its_user() {
    for (url, expected) in [
        (
            "http://GOOD.example:80/a/../b?q=secret#f",
            "http://good.example/b",
        ),
        (
            "http://user:pw@good.example:8443/",
            "http://good.example:8443/",
        ),
        ("http:good.example", "http://good.example/"),
        ("data:text/plain,secret", "data:"),
        ("secret", "no URL"),
    ] {
        assert_eq!(shown(url), expected);
    }
}

#[test]
fn a_model_is_told_one_of_few_words_which_its_description_explains() {
    let tool = HttpFetch::new(Outbound::new(policy(&[], &[]), AMPLE));

    let description = tool.definition().description;

    for failure in Failure::ALL {
        assert!(description.contains(failure.as_str()), "{failure}");
    }
}
