//! A model that makes the server fetch: what an operator opened is reached, and nothing else is.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::support::history;
use super::support::provider::Ask;
use super::support::reply::Reply;
use super::support::until::until_true;
use super::support::world::World;

/// A page on this machine, and who asked for it.
struct Page {
    address: SocketAddr,
    log: Arc<Mutex<Log>>,
}

#[derive(Default)]
struct Log {
    sockets: usize,
    open: usize,
    most_open: usize,
    heads: Vec<String>,
}

impl Page {
    /// A page at that address of this machine, which takes a while to say so.
    async fn at(address: &str, takes: Duration) -> Self {
        let listener = TcpListener::bind((address, 0)).await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let log = Arc::new(Mutex::new(Log::default()));
        let noted = Arc::clone(&log);
        tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.expect("a connection");
                note(&noted, |log| log.sockets += 1);
                let noted = Arc::clone(&noted);
                // Whoever asked may have gone.
                tokio::spawn(async move { drop(answer(socket, &noted, takes).await) });
            }
        });
        Self { address, log }
    }

    fn port(&self) -> u16 {
        self.address.port()
    }

    fn sockets(&self) -> usize {
        note(&self.log, |log| log.sockets)
    }
}

fn note<T>(log: &Mutex<Log>, noted: impl FnOnce(&mut Log) -> T) -> T {
    noted(&mut log.lock().unwrap_or_else(PoisonError::into_inner))
}

async fn answer(mut socket: TcpStream, log: &Mutex<Log>, takes: Duration) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        if socket.read_buf(&mut bytes).await? == 0 {
            return Ok(());
        }
    }
    note(log, |log| {
        log.heads.push(String::from_utf8_lossy(&bytes).into_owned());
        log.open += 1;
        log.most_open = log.most_open.max(log.open);
    });
    tokio::time::sleep(takes).await;
    note(log, |log| log.open -= 1);
    let page = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nthe page\n";
    socket.write_all(page).await
}

/// What the model was told of the calls of its first answer.
fn told(world: &World, run: &str) -> Vec<String> {
    let asked = world.provider.asked_for(run);
    let told = asked[0].ids.iter().map(|id| world.provider.told_of(id));
    told.map(Option::unwrap_or_default).collect()
}

/// Answers with these fetches, and then with text.
fn fetches(urls: Vec<String>) -> impl Fn(&Ask) -> Reply + Send + Sync + 'static {
    move |ask: &Ask| match ask.turn {
        1 => Reply::calls(urls.iter().map(|url| ("http_fetch", json!({"url": url})))),
        _ => Reply::text("all done"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_in_an_opened_network_is_fetched_and_its_neighbour_is_not() {
    let page = Page::at("127.0.0.2", Duration::ZERO).await;
    let neighbour = Page::at("127.0.0.1", Duration::ZERO).await;
    let urls = vec![
        format!("http://{}/a?key=canary", page.address),
        format!("http://{}/b", neighbour.address),
        format!("http://localhost:{}/c", neighbour.port()),
        format!("http://127.0.0.2:{}/d", neighbour.port()),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "http://elsewhere.example/".to_owned(),
    ];
    let hosts = format!(
        "{},{},localhost:{}",
        page.address,
        neighbour.address,
        neighbour.port()
    );
    let settings = [
        ("HANGO_HTTP_FETCH_ALLOWED_HOSTS", hosts.as_str()),
        ("HANGO_HTTP_FETCH_ALLOWED_NETWORKS", "127.0.0.2/32"),
    ];
    let mut world = World::start(&settings, fetches(urls)).await;

    let run = world.start_run("one").await;
    history::all_ended(&world, "succeeded").await;

    let expected = [
        "HTTP/1.1 200 OK\n\nthe page\n",
        "blocked_address",
        "blocked_address",
        "blocked_host",
        "blocked_address",
        "blocked_host",
    ];
    assert_eq!(told(&world, "one"), expected);
    assert_eq!((page.sockets(), neighbour.sockets()), (1, 0));
    let calls = world.api.tool_calls(&run.id).await;
    let errors: Vec<_> = calls.iter().map(|call| call["is_error"].clone()).collect();
    assert_eq!(errors, [false, true, true, true, true, true]);

    // s80: who fetched what is in the log, without what may be secret of it.
    let shown = format!("http://{}/a", page.address);
    let mut found = None;
    let hango = world.hango();
    until_true("the fetch is logged", || {
        let logged = hango.logged();
        let line = logged.lines().find(|line| line.contains(&shown));
        found = line.map(str::to_owned);
        found.is_some()
    })
    .await;
    let found = found.unwrap_or_default();
    assert!(
        found.contains(&run.id) && !found.contains("canary"),
        "{found}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_fetched_unless_a_host_is_listed() {
    let page = Page::at("127.0.0.1", Duration::ZERO).await;
    let urls = vec![
        format!("http://{}/", page.address),
        "http://good.example/".to_owned(),
    ];
    let world = World::start(&[], fetches(urls)).await;

    world.start_run("one").await;
    history::all_ended(&world, "succeeded").await;

    assert_eq!(told(&world, "one"), ["blocked_address", "blocked_host"]);
    assert_eq!(page.sockets(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn s65_a_proxy_of_the_environment_is_not_asked() {
    let proxy = Page::at("127.0.0.1", Duration::ZERO).await;
    let page = Page::at("127.0.0.1", Duration::ZERO).await;
    let host = format!("localhost:{}", page.port());
    let address = format!("http://{}", proxy.address);
    let settings = [
        ("HANGO_HTTP_FETCH_ALLOWED_HOSTS", host.as_str()),
        ("HANGO_HTTP_FETCH_ALLOWED_NETWORKS", "127.0.0.0/8, ::1/128"),
        ("HTTP_PROXY", &address),
        ("http_proxy", &address),
        ("ALL_PROXY", &address),
        // The provider is asked as an operator wants it.
        ("NO_PROXY", "127.0.0.1"),
    ];
    let world = World::start(&settings, fetches(vec![format!("http://{host}/")])).await;

    world.start_run("one").await;
    history::all_ended(&world, "succeeded").await;

    assert_eq!(told(&world, "one"), ["HTTP/1.1 200 OK\n\nthe page\n"]);
    assert_eq!((page.sockets(), proxy.sockets()), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn s82_however_many_fetches_a_model_wants_few_are_made_at_a_time() {
    let page = Page::at("127.0.0.1", Duration::from_millis(50)).await;
    let host = page.address.to_string();
    let urls = (0..12).map(|n| format!("http://{host}/{n}")).collect();
    let settings = [
        ("HANGO_HTTP_FETCH_ALLOWED_HOSTS", host.as_str()),
        ("HANGO_HTTP_FETCH_ALLOWED_NETWORKS", "127.0.0.0/8"),
        ("HANGO_TOOL_CONCURRENCY", "2"),
    ];
    let world = World::start(&settings, fetches(urls)).await;

    world.start_run("one").await;
    history::all_ended(&world, "succeeded").await;

    assert_eq!(page.sockets(), 12);
    assert_eq!(note(&page.log, |log| log.most_open), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn s82_hango_is_to_a_fetch_what_it_is_to_anybody_without_a_key() {
    // A port that is free now, at an address of nobody else's.
    let free = TcpListener::bind("127.0.0.3:0").await.expect("a free port");
    let own = free.local_addr().expect("it is bound").to_string();
    drop(free);
    let settings = [
        ("HANGO_LISTEN", own.as_str()),
        ("HANGO_HTTP_FETCH_ALLOWED_HOSTS", &own),
        ("HANGO_HTTP_FETCH_ALLOWED_NETWORKS", "127.0.0.3/32"),
    ];
    let world = World::start(&settings, fetches(vec![format!("http://{own}/v1/me")])).await;

    world.start_run("one").await;
    history::all_ended(&world, "succeeded").await;

    let [told] = told(&world, "one").try_into().expect("one call");
    assert!(told.starts_with("HTTP/1.1 401 Unauthorized\n\n"), "{told}");
    assert!(told.contains("unauthenticated"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn s83_no_tenant_says_where_a_provider_is() {
    let world = World::start(&[], |_| Reply::text("all done")).await;
    let agent = json!({"slug": "other", "provider": "openai", "model": "test",
                       "base_url": "http://169.254.169.254/v1"});

    let refused = world.api.post("/v1/agents", &agent).await.expect(422);

    let said = &refused["errors"][0];
    assert_eq!(said["pointer"], "/base_url", "{refused}");
    assert_eq!(said["code"], "unknown_field", "{refused}");
}
