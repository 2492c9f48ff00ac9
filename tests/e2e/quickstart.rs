//! `hango quickstart`: the main job from one command, in a directory where nothing is.

use serde_json::json;

use super::support::api::{Api, list, text};
use super::support::gate::Gate;
use super::support::hango::Hango;
use super::support::home::Home;
use super::support::provider::{Ask, FakeProvider};
use super::support::reply::Reply;
use super::support::store::Store;
use super::support::until::{until, until_true};

fn database(home: &Home) -> Store {
    Store::Sqlite(home.path().join("hango-data/hango.db"))
}

/// The key that a quickstart printed.
fn printed_key(hango: &Hango) -> String {
    let printed = hango.printed();
    let key = printed.split("HANGO_API_KEY=").nth(1);
    let key = key.and_then(|rest| rest.split_whitespace().next());
    key.expect("it is printed").to_owned()
}

/// The parts of `printed` in front of which each of `marks` stands, in this order.
fn in_order(printed: &str, marks: &[&str]) -> bool {
    let mut rest = printed;
    marks.iter().all(|mark| match rest.split_once(mark) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_run_executes_in_an_empty_directory_and_a_second_reuses_what_it_made() {
    let home = Home::empty();

    let first = home.run(&["quickstart", "--once"]);

    assert_eq!(first.status, Some(0), "{}", first.err);
    let marks = [
        "listening on http://127.0.0.1:",
        "You       What time is it in Tokyo",
        "Tool      get_time {",
        "→  ",
        "Agent     ",
        "succeeded",
        "Usage     2 model calls",
        "Trace     ",
    ];
    assert!(in_order(&first.out, &marks), "{}", first.out);

    let second = home.run(&["quickstart", "--once"]);

    assert_eq!(second.status, Some(0), "{}", second.err);
    assert!(in_order(&second.out, &marks), "{}", second.out);
    for (table, rows) in [("tenants", 1), ("agents", 1), ("sessions", 1), ("runs", 2)] {
        assert_eq!(database(&home).count(table).await, rows, "{table}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quickstart_goes_on_to_serve_and_prints_a_key_that_works() {
    let home = Home::empty();
    let mut hango = Hango::start(&home, &["quickstart"]);
    let address = hango.address().await;
    hango.prints("HANGO_API_KEY=hk_").await;

    let api = Api::of(&address).with_key(Some(&printed_key(&hango)));
    let me = api.get("/v1/me").await.expect(200);
    assert_eq!(me["tenant"]["slug"], "default");
    let session = api
        .post("/v1/sessions", &json!({"agent": "quickstart"}))
        .await;
    let session = text(&session.expect(201)["id"]);
    let run = api.start_run(&session, "What time is it in Berlin?").await;
    assert_eq!(api.ended(&run).await["state"], "succeeded");
    assert_eq!(api.tool_calls(&run).await[0]["name"], "get_time");
    hango.term();
    let (status, _) = hango.ended().await;
    assert_eq!(status.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_that_was_printed_last_is_good_until_another_one_is_printed() {
    let home = Home::empty();
    let mut first = Hango::start(&home, &["quickstart"]);
    first.prints("HANGO_API_KEY=hk_").await;
    let old = printed_key(&first);
    first.term();
    first.ended().await;
    let me = async |hango: &mut Hango, key: &str| {
        let api = Api::of(&hango.address().await).with_key(Some(key));
        api.get("/v1/me").await
    };

    let once = home.run(&["quickstart", "--once"]);

    assert_eq!(once.status, Some(0), "{}", once.err);
    let mut server = Hango::start(&home, &["serve"]);
    me(&mut server, &old).await.expect(200);
    server.term();
    server.ended().await;

    let mut again = Hango::start(&home, &["quickstart"]);
    again.prints("HANGO_API_KEY=hk_").await;

    let new = printed_key(&again);
    me(&mut again, &old).await.expect(401);
    me(&mut again, &new).await.expect(200);
    let address = again.address().await;
    let api = Api::of(&address).with_key(Some(&new));
    let keys = list(&api.get("/v1/api-keys").await.expect(200));
    let open = keys.iter().filter(|key| key["revoked_at"].is_null());
    assert_eq!(open.count(), 1, "nobody knows the one of --once");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_printed_example_ends_the_process_in_the_middle_of_a_run_that_goes_on_as_its_second_attempt()
 {
    let home = Home::empty();
    let mut hango = Hango::start(&home, &["quickstart"]);
    let address = hango.address().await;
    hango.prints("kill -9 ").await;
    hango.prints("in its second attempt").await;
    let key = printed_key(&hango);
    let api = Api::of(&address).with_key(Some(&key));
    let printed = hango.printed();
    assert!(
        printed.contains(&format!("http://{address}/docs")),
        "{printed}"
    );
    let example = printed.split("{\"input\": \"").last();
    let question = example.and_then(|rest| rest.split('"').next());
    let session = api
        .post("/v1/sessions", &json!({"agent": "quickstart"}))
        .await;
    let session = text(&session.expect(201)["id"]);
    let run = api
        .start_run(&session, question.expect("it is printed"))
        .await;
    until("the run is executed", async || {
        (api.run(&run).await["state"] == "running").then_some(())
    })
    .await;

    hango.kill9();
    let mut hango = Hango::start(&home, &["serve"]);
    let address = hango.address().await;

    let ended = Api::of(&address).with_key(Some(&key)).ended(&run).await;
    assert_eq!(ended["state"], "succeeded");
    assert_eq!(ended["attempt"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quickstart_killed_in_the_middle_first_follows_its_run_to_the_end_when_started_again() {
    let gate = Gate::closed();
    let model = move |ask: &Ask| match (ask.turn, ask.messages.len() > 5, ask.time) {
        (1, _, _) => Reply::calls([("get_time", json!({"timezone": "Asia/Tokyo"}))]),
        (_, false, 1) => Reply::text("this is never whole").held_after(3, &gate),
        (_, _, _) => Reply::text("It is late in Tokyo."),
    };
    let provider = FakeProvider::start(model).await;
    let mut home = Home::empty();
    home.set("HANGO_OPENAI_BASE_URL", &provider.base_url());
    let hango = Hango::start(&home, &["quickstart", "--once"]);
    hango.prints("Tool      get_time").await;
    until_true("the answer is on its way", || {
        provider
            .asked()
            .iter()
            .any(|asked| asked.ask.turn == 2 && asked.sent() >= 3)
    })
    .await;

    hango.kill9();
    let again = home.run(&["quickstart", "--once"]);

    assert_eq!(again.status, Some(0), "{}", again.err);
    let marks = [
        "An earlier run did not end; it goes on:",
        "You       What time is it in Tokyo",
        "Tool      get_time {",
        "Agent     It is late in Tokyo.",
        "succeeded",
        "You       What time is it in Tokyo",
        "Tool      get_time {",
        "Agent     It is late in Tokyo.",
        "succeeded",
    ];
    assert!(in_order(&again.out, &marks), "{}", again.out);
    assert_eq!(provider.refused(), Vec::<String>::new());
    assert_eq!(database(&home).count("runs").await, 2);
    // Both runs ask the same, and are told apart by how much was said before.
    let first_turns = provider
        .asked()
        .into_iter()
        .filter(|asked| asked.ask.turn == 1);
    assert_eq!(
        first_turns.count(),
        2,
        "a committed turn was asked for again"
    );
}
