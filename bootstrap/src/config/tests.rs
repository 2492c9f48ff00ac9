//! Tests of the configuration as a whole.

use hango_openai::Api;
use secrecy::ExposeSecret;

use hango_domain::TraceId;

use super::*;

fn environment(variables: &[(&str, &str)]) -> Environment {
    variables
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
        .collect()
}

fn load(variables: &[(&str, &str)], file: &str) -> Result<Config, Problems> {
    Config::load(&environment(variables), Some(file))
}

fn loaded(variables: &[(&str, &str)], file: &str) -> Config {
    load(variables, file).unwrap_or_else(|problems| panic!("{problems}"))
}

fn refused(variables: &[(&str, &str)], file: &str) -> String {
    load(variables, file)
        .err()
        .expect("the test's own configuration does not work")
        .to_string()
}

#[test]
fn nothing_needs_to_be_set() {
    let config = loaded(&[], "");

    assert_eq!(config.settings.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(config.settings.run_heartbeat_interval.as_secs(), 30);
    assert_eq!(config.providers.len(), 1);
    assert_eq!(config.providers[0].name, DEMO);
    assert_eq!(config.warnings(), Vec::<String>::new());
}

#[test]
fn every_setting_has_a_doc_line_and_a_name_of_its_own() {
    let mut names = std::collections::BTreeSet::new();
    for setting in table() {
        assert!(setting.doc.trim().len() > 10, "{}", setting.name);
        assert!(
            names.insert(setting.key()),
            "{} is there twice",
            setting.name
        );
    }
}

#[test]
fn unknown_variables_are_answered_with_the_nearest_known_one() {
    let refused = refused(&[("HANGO_RUN_LEASE_TTTL", "90s")], "");

    assert!(
        refused.contains("HANGO_RUN_LEASE_TTTL: unknown; did you mean HANGO_RUN_LEASE_TTL?"),
        "{refused}"
    );
}

#[test]
fn variables_of_clusters_clients_and_tests_are_left_alone() {
    loaded(
        &[
            ("HANGO_PORT", "tcp://10.0.0.1:8080"),
            ("HANGO_PORT_8080_TCP_ADDR", "10.0.0.1"),
            ("HANGO_SERVICE_HOST", "10.0.0.1"),
            ("HANGO_TEST_DATABASE_URL", "postgres://localhost"),
            ("HANGO_PG_BINDIR", "/usr/lib"),
            ("HANGO_URL", "http://localhost"),
            ("HANGO_API_KEY", "hk"),
            ("HANGO_CONFIG", "hango.toml"),
            ("PATH", "/bin"),
        ],
        "",
    );
}

#[test]
fn a_build_that_is_not_for_tests_cannot_be_made_to_fail() {
    let environment = environment(&[("HANGO_FAILPOINT", "after_claim")]);
    let problems = |test_build| {
        let mut problems = Problems::default();
        names::check_environment(&environment, &[], test_build, &mut problems);
        problems.check()
    };

    assert_eq!(problems(true), Ok(()));
    assert!(problems(false).is_err());
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let refused = refused(
        &[("HANGO_LISTEN", "here"), ("HANGO_RUN_WORKERS", "0")],
        "run_leese_ttl = '1s'\n[providers.local]\nkind = 'opnai'\n[[tools.http]]\nname = 'a b'",
    );

    for part in [
        "HANGO_LISTEN: not an IP address",
        "HANGO_RUN_WORKERS: not a whole number from 1",
        "run_leese_ttl: unknown; did you mean run_lease_ttl?",
        "providers.local.kind: no kind of provider; did you mean openai?",
        "tools.http.a b.name: not 1 to 64",
        "tools.http.a b.url: missing",
    ] {
        assert!(refused.contains(part), "{part} in {refused}");
    }
}

#[test]
fn a_syntax_error_says_where_and_repeats_nothing() {
    let refused = refused(&[], "log = 'info'\nadmin_token = 'secret");

    assert!(refused.contains("hango.toml, line 2"), "{refused}");
    assert!(!refused.contains("secret"), "{refused}");
}

#[test]
fn dangerous_combinations_are_refused() {
    for (name, text) in [
        ("HANGO_RUN_HEARTBEAT_INTERVAL", "45s"),
        ("HANGO_RUN_LEASE_TTL", "0s"),
        ("HANGO_DATABASE_MAX_CONNECTIONS", "2"),
        ("HANGO_HTTP_FETCH_ALLOWED_HOSTS", "*"),
        ("HANGO_HTTP_FETCH_ALLOWED_NETWORKS", "0.0.0.0/0"),
        ("HANGO_TOOL_CONCURRENCY", "0"),
        ("HANGO_MAX_ITERATIONS", "0"),
        ("HANGO_BOOTSTRAP_API_KEY", "guess"),
        ("HANGO_ADMIN_TOKEN", "sés\u{e4}me"),
        ("HANGO_ADMIN_TOKEN", "secret"),
        ("HANGO_LOG", "loud"),
    ] {
        let refused = refused(&[(name, text)], "");
        assert!(refused.contains(name), "{name}={text}: {refused}");
    }
}

const SERVER: (&str, &str) = (
    "HANGO_DATABASE_URL",
    "postgres://me:canary@host/hango?password=canary",
);

#[test]
fn half_a_server_is_refused_on_an_embedded_store_only() {
    for (variables, whole) in [(&[][..], true), (&[SERVER], false)] {
        let config = loaded(variables, "");
        assert_eq!(config.check_parts(false, false), Ok(()));
        assert_eq!(config.check_parts(true, false).is_err(), whole);
        assert_eq!(config.check_parts(false, true).is_err(), whole);
    }
}

#[test]
fn a_quickstart_is_refused_on_a_store_that_others_may_work_with() {
    assert_eq!(loaded(&[], "").check_embedded(), Ok(()));
    assert!(loaded(&[SERVER], "").check_embedded().is_err());
}

#[test]
fn only_a_server_has_a_direct_url_and_it_is_one_of_the_same_kind() {
    let name = "HANGO_DATABASE_DIRECT_URL";
    loaded(&[SERVER, (name, "postgres://direct/hango")], "");

    for variables in [
        &[SERVER, (name, "sqlite://a.db")][..],
        &[(name, "postgres://direct/hango")],
        &[(name, "sqlite://a.db")],
    ] {
        assert!(refused(variables, "").contains(name), "{variables:?}");
    }
}

#[test]
fn what_is_secret_in_the_stores_urls_is_not_shown() {
    let direct = (
        "HANGO_DATABASE_DIRECT_URL",
        "postgresql://me:canary@direct/hango",
    );

    let shown = loaded(&[SERVER, direct], "").to_string();

    assert!(!shown.contains("canary"), "{shown}");
    assert!(shown.contains("postgres://********@host/hango"), "{shown}");
}

#[test]
fn an_operators_token_opens_for_its_own_text_and_is_not_shown() {
    let text = "open sesame, said the one operator";
    let config = loaded(&[("HANGO_ADMIN_TOKEN", text)], "");
    let token = config.settings.admin_token.expect("it is set");

    assert!(token.is(text) && !token.is("open"));
    assert!(!config.to_string().contains("sesame"));
    let short = refused(&[("HANGO_ADMIN_TOKEN", "canary")], "");
    assert!(short.contains("32 characters") && short.contains("openssl rand"));
    assert!(!short.contains("canary"), "{short}");
    let unset = loaded(&[("HANGO_ADMIN_TOKEN", "")], "");
    assert_eq!(unset.settings.admin_token, None);
}

#[test]
fn metrics_are_shown_where_the_api_is_only_while_nobody_else_reaches_it() {
    let shown = |variables: &[(&str, &str)]| loaded(variables, "").settings.shows_metrics();

    assert!(shown(&[]));
    assert!(shown(&[("HANGO_LISTEN", "[::1]:8080")]));
    assert!(!shown(&[("HANGO_LISTEN", "0.0.0.0:8080")]));
    assert!(!shown(&[("HANGO_METRICS_LISTEN", "127.0.0.1:9464")]));
    let listen = loaded(
        &[("HANGO_METRICS_LISTEN", "0.0.0.0:9464")],
        "metrics_tenant_label = false",
    );
    assert!(listen.settings.metrics_listen.is_some() && !listen.settings.metrics_tenant_label);
}

#[test]
fn there_is_no_limit_of_rates_unless_one_is_set() {
    let free = loaded(&[], "").settings;
    let set = loaded(
        &[("HANGO_RATE_LIMIT_PER_KEY", "10")],
        "rate_limit_per_tenant = 100",
    );
    let set = set.settings;

    assert_eq!(
        (free.rate_limit_per_key, free.rate_limit_per_tenant),
        (0, 0)
    );
    assert_eq!(
        (set.rate_limit_per_key, set.rate_limit_per_tenant),
        (10, 100)
    );
}

#[test]
fn what_opentelemetry_says_is_read_from_its_own_variables() {
    let config = loaded(
        &[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=canary"),
            ("OTEL_TRACES_SAMPLER", "traceidratio"),
            ("OTEL_TRACES_SAMPLER_ARG", "0"),
        ],
        "trace_llm_content = true",
    );

    assert!(config.settings.trace_llm_content);
    assert!(!config.settings.sampling().records(TraceId([0xff; 16])));
    let sent_to = config.settings.otlp("me".to_owned()).map(|it| it.endpoint);
    assert_eq!(sent_to, "http://127.0.0.1:4318".parse().ok());
    assert!(!config.to_string().contains("canary"));
}

#[test]
fn nothing_is_sent_without_a_collector_or_where_that_is_switched_off() {
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");
    let otlp = |variables: &[_]| loaded(variables, "").settings.otlp("me".to_owned());

    assert!(otlp(&[]).is_none());
    assert!(otlp(&[endpoint]).is_some());
    assert!(otlp(&[endpoint, ("OTEL_SDK_DISABLED", "TRUE")]).is_none());
}

#[test]
fn what_opentelemetry_does_not_know_is_refused() {
    for (name, text) in [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "127.0.0.1:4317"),
        (
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "http://me:canary@127.0.0.1:4318",
        ),
        ("OTEL_EXPORTER_OTLP_HEADERS", "canary"),
        ("OTEL_TRACES_SAMPLER", "sometimes"),
    ] {
        let refused = refused(&[(name, text)], "");
        assert!(refused.contains(name), "{name}: {refused}");
        assert!(!refused.contains("canary"), "{refused}");
    }
    let share = [
        ("OTEL_TRACES_SAMPLER", "traceidratio"),
        ("OTEL_TRACES_SAMPLER_ARG", "half"),
    ];
    assert!(refused(&share, "").contains("OTEL_TRACES_SAMPLER_ARG"));
}

#[test]
fn hosts_and_networks_to_fetch_from_are_lists() {
    let config = loaded(
        &[(
            "HANGO_HTTP_FETCH_ALLOWED_HOSTS",
            "a.example, *.b.example:8443",
        )],
        "http_fetch_allowed_networks = ['10.1.0.0/16', 'fd00::/8']",
    );

    assert_eq!(config.settings.http_fetch_allowed_hosts.len(), 2);
    assert_eq!(config.settings.http_fetch_allowed_networks.len(), 2);
    let refused = refused(&[("HANGO_HTTP_FETCH_ALLOWED_HOSTS", "a.example, *")], "");
    let said = r#""*" is too wide: it would open hosts of anyone"#;
    assert!(refused.contains(said), "{refused}");
}

#[test]
fn a_drain_shorter_than_a_turn_is_warned_about() {
    let config = loaded(&[("HANGO_DRAIN_TIMEOUT", "89s")], "");

    assert_eq!(config.warnings().len(), 1);
    assert!(config.warnings()[0].starts_with("HANGO_DRAIN_TIMEOUT"));
}

/// The names of the providers there are.
fn providers(variables: &[(&str, &str)], file: &str) -> Vec<String> {
    let providers = loaded(variables, file).providers.into_iter();
    providers.map(|provider| provider.name).collect()
}

#[test]
fn a_public_provider_exists_when_its_key_or_its_url_is_set() {
    for (name, provider) in [
        ("ANTHROPIC_API_KEY", "anthropic"),
        ("HANGO_ANTHROPIC_BASE_URL", "anthropic"),
        ("OPENAI_API_KEY", "openai"),
        ("HANGO_OPENAI_BASE_URL", "openai"),
    ] {
        let found = providers(&[(name, "http://localhost/v1")], "");
        assert_eq!(found, [provider, DEMO], "{name}");
    }
}

#[test]
fn providers_stand_in_the_order_of_their_names() {
    let keys = [("OPENAI_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k")];

    let found = providers(&keys, "[providers.play]\nkind = 'scripted'");

    assert_eq!(found, ["anthropic", "openai", "play", DEMO]);
}

#[test]
fn a_public_providers_name_is_for_one_of_its_kind() {
    for (variable, file) in [
        ("OPENAI_API_KEY", "[providers.openai]\nkind = 'scripted'"),
        (
            "ANTHROPIC_API_KEY",
            "[providers.anthropic]\nkind = 'openai'\nbase_url = 'http://h/v1'",
        ),
    ] {
        let refused = refused(&[(variable, "k")], file);

        assert!(refused.contains("is of another kind"), "{refused}");
        assert!(refused.contains(variable), "{refused}");
    }
}

#[test]
fn variables_win_over_the_section_of_the_provider_anthropic() {
    let file = "[providers.anthropic]\nkind = 'anthropic'\nextra_body = { top_k = 3 }";
    let url = ("HANGO_ANTHROPIC_BASE_URL", "http://wins");

    let config = loaded(&[("ANTHROPIC_API_KEY", "wins"), url], file);

    let ProviderKind::Anthropic { server, .. } = &config.providers[0].kind else {
        panic!("not an anthropic provider");
    };
    assert_eq!(server.base_url.as_str(), "http://wins/");
    assert_eq!(server.extra_body["top_k"], 3);
    let key = server.api_key.as_ref().map(ExposeSecret::expose_secret);
    assert_eq!(key, Some("wins"));
}

#[test]
fn variables_win_over_the_section_of_the_provider_openai() {
    let file =
        "[providers.openai]\nkind = 'openai'\nbase_url = 'http://filed/v1'\napi_key_env = 'K'";

    let config = loaded(&[("OPENAI_API_KEY", "wins"), ("K", "loses")], file);

    let ProviderKind::OpenAi { server, .. } = &config.providers[0].kind else {
        panic!("not an openai provider");
    };
    assert_eq!(server.base_url.as_str(), "http://filed/v1");
    let key = server.api_key.as_ref().map(ExposeSecret::expose_secret);
    assert_eq!(key, Some("wins"));
}

#[test]
fn a_section_of_a_provider_reads_every_documented_key() {
    let file = r#"
        [providers.local]
        kind = "openai"
        base_url = "http://127.0.0.1:8000/v1"
        api_key_env = "LOCAL_KEY"
        api = "chat_completions"
        headers = { x-team = "env:TEAM", x-fixed = "yes" }
        extra_body = { top_k = 3 }
        quirks = []
        connect_timeout = "1s"
        first_byte_timeout = "2s"
        idle_timeout = "3s"

        [providers.other]
        kind = "anthropic"
        base_url = "http://127.0.0.1:8000"
        quirks = ["no_temperature"]

        [providers.play]
        kind = "scripted"
        script = "play.toml"

        [providers.reasoning]
        kind = "openai"
        base_url = "http://127.0.0.1:8000/v1"
        api = "responses"
    "#;

    let config = loaded(&[("LOCAL_KEY", "k"), ("TEAM", "blue")], file);

    let ProviderKind::OpenAi { server, api, .. } = &config.providers[0].kind else {
        panic!("not an openai provider");
    };
    assert_eq!(*api, Api::ChatCompletions);
    assert_eq!(server.headers["x-team"], "blue");
    assert_eq!(server.extra_body["top_k"], 3);
    assert_eq!(server.idle_timeout.as_secs(), 3);
    let ProviderKind::Anthropic { quirks, .. } = &config.providers[1].kind else {
        panic!("not an anthropic provider");
    };
    assert_eq!(quirks, &[hango_anthropic::Quirk::NoTemperature]);
    let ProviderKind::Scripted { script } = &config.providers[2].kind else {
        panic!("not a scripted provider");
    };
    assert_eq!(script.as_deref(), Some("play.toml".as_ref()));
    let ProviderKind::OpenAi { api, .. } = &config.providers[3].kind else {
        panic!("not an openai provider");
    };
    assert_eq!(*api, Api::Responses);
}

#[test]
fn mistakes_in_a_section_name_the_key() {
    for (file, part) in [
        ("kind = 'openai'", "providers.local.base_url: missing"),
        ("kind = 'anthropic'", "providers.local.base_url: missing"),
        (
            "kind = 'anthropic'\nbase_url = 'http://h'\napi = 'responses'",
            "providers.local.api: unknown",
        ),
        (
            "kind = 'anthropic'\nbase_url = 'http://h'\nquirks = ['odd']",
            "providers.local.quirks: \"odd\": no quirk of this kind of provider",
        ),
        (
            "kind = 'openai'\nbase_url = 'http://h'\napi = 'assistants'",
            "providers.local.api: neither chat_completions nor responses",
        ),
        (
            "kind = 'openai'\nbase_ulr = 'http://h'",
            "did you mean base_url?",
        ),
        (
            "kind = 'scripted'\nbase_url = 'http://h'",
            "providers.local.base_url: unknown",
        ),
        (
            "kind = 'openai'\napi_key_env = 'GONE'",
            "providers.local.api_key_env: the variable GONE is not set",
        ),
        (
            "kind = 'openai'\nheaders = { a = 'env:GONE' }",
            "the variable GONE is not set",
        ),
        (
            "kind = 'openai'\nidle_timeout = 3",
            "idle_timeout: not a text",
        ),
    ] {
        let refused = refused(&[], &format!("[providers.local]\n{file}"));
        assert!(refused.contains(part), "{part} in {refused}");
    }
}

#[test]
fn the_contracts_example_of_a_tool_reads() {
    let file = r#"
        [[tools.http]]
        name = "create_ticket"
        description = "Opens a ticket. Use it once per problem."
        url = "https://tickets.internal/hooks/create"
        idempotency = "keyed"
        timeout = "10s"
        headers = { authorization = "env:TICKET_TOKEN" }
        parameters = { type = "object", required = ["title"], properties = { title = { type = "string" } } }
    "#;

    let config = loaded(&[("TICKET_TOKEN", "Bearer t")], file);

    let tool = &config.http_tools[0];
    assert_eq!(tool.name, "create_ticket");
    assert_eq!(tool.headers["authorization"], "Bearer t");
    assert_eq!(tool.timeout.as_secs(), 10);
    assert_eq!(tool.parameters["required"][0], "title");
}

#[test]
fn the_threshold_of_equal_calls_is_what_the_layer_takes() {
    let name = "HANGO_REPEAT_CALL_THRESHOLD";

    assert_eq!(loaded(&[], "").settings.repeat_call_threshold, 3);
    let set = loaded(&[(name, "2")], "").settings;
    assert_eq!(set.repeat_call_threshold, 2);
    for wrong in ["0", "1", "1001", "-3", "3.0", "three"] {
        let refused = refused(&[(name, wrong)], "");
        let expected = format!("{name}: not a whole number from 2 to 1000");
        assert!(refused.contains(&expected), "{refused}");
    }
}

#[test]
fn everything_is_kept_unless_somebody_says_for_how_long() {
    let name = "HANGO_RETENTION";
    let kept = |variables: &[_], file| {
        let retention = loaded(variables, file).settings.retention;
        retention.map(|it| it.span().as_secs())
    };

    assert_eq!(kept(&[], ""), None);
    assert_eq!(kept(&[(name, "")], ""), None);
    assert_eq!(kept(&[(name, "720h")], ""), Some(720 * 3600));
    assert_eq!(kept(&[], "retention = '1m'"), Some(60));
    for too_short in ["0s", "59999ms"] {
        let refused = refused(&[(name, too_short)], "");
        let expected = format!("{name}: below 1m: ");
        assert!(refused.contains(&expected), "{refused}");
        assert!(
            refused.contains("leave it out to keep everything"),
            "{refused}"
        );
    }
    for wrong in ["30d", "720", "-1h"] {
        let refused = refused(&[(name, wrong)], "");
        assert!(refused.contains("not a duration such as"), "{refused}");
    }
}

#[test]
fn two_tools_of_one_name_are_refused() {
    let tool = "[[tools.http]]\nname='a'\ndescription='b'\nurl='http://h/'\nidempotency='safe'\n";

    let refused = refused(&[], &tool.repeat(2));

    assert!(refused.contains("two tools of that name"), "{refused}");
}

#[test]
fn what_is_shown_holds_no_secret_and_says_where_values_come_from() {
    let config = loaded(
        &[("OPENAI_API_KEY", "hush")],
        "run_workers = 8\nopenai_base_url = 'http://h/v1?key=hush'",
    );

    let shown = config.to_string();

    assert!(!shown.contains("hush"), "{shown}");
    for (name, origin) in [
        ("OPENAI_API_KEY ", "environment"),
        ("HANGO_RUN_WORKERS ", "file"),
        ("HANGO_LISTEN ", "default"),
    ] {
        let line = shown.lines().find(|line| line.starts_with(name));
        assert!(line.is_some_and(|line| line.ends_with(origin)), "{shown}");
    }
}

#[test]
fn what_is_shown_of_providers_and_tools_is_what_they_are_and_where_without_secrets() {
    let config = loaded(
        &[("ANTHROPIC_API_KEY", "hush"), ("TOKEN", "hush")],
        r#"
        [providers.local]
        kind = "openai"
        base_url = "http://127.0.0.1:8000/v1?key=hush"

        [providers.played]
        kind = "scripted"
        script = "weather.toml"

        [providers.thinker]
        kind = "openai"
        api = "responses"
        base_url = "https://gateway.example/v1"

        [[tools.http]]
        name = "create_ticket"
        description = "Opens a ticket."
        url = "https://tickets.internal/hooks/create?key=hush"
        idempotency = "keyed"
        headers = { authorization = "env:TOKEN" }
        "#,
    );

    let shown = config.to_string();

    assert!(!shown.contains("hush"), "{shown}");
    let lines = shown.lines();
    let behind: Vec<_> = lines.skip_while(|line| !line.contains(" (")).collect();
    let expected = [
        "provider anthropic (anthropic, https://api.anthropic.com/)",
        "provider local (openai, chat_completions, http://127.0.0.1:8000/v1)",
        "provider played (scripted, weather.toml)",
        "provider thinker (openai, responses, https://gateway.example/v1)",
        "provider demo (scripted)",
        "tool create_ticket (http, https://tickets.internal/hooks/create)",
    ];
    assert_eq!(behind, expected);
}

#[test]
fn help_names_every_variable() {
    let help = help();

    for setting in table() {
        assert!(help.contains(setting.name), "{}", setting.name);
    }
}
