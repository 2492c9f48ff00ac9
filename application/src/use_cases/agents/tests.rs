//! What makes an agent acceptable.

use std::sync::Arc;

use hango_domain::access::Role;
use hango_ports::Stores;
use hango_ports::agent_store::MockAgentStore;

use super::super::fixtures::world;
use super::*;

fn draft() -> AgentDraft {
    AgentDraft {
        model: Some("model-2".to_owned()),
        ..AgentDraft::default()
    }
}

#[tokio::test]
async fn a_change_that_lost_a_race_is_made_again_over_what_won() {
    let world = world(|stores| stores);
    let caller = world.caller(Role::Admin);
    let first = world.fixture.new_agent(&caller.scope);
    let mut second = first.clone();
    second.version = 2;
    second.settings.system_prompt = "Be long.".to_owned();
    let mut agents = MockAgentStore::new();
    let (once, then) = (first.clone(), second.clone());
    agents
        .expect_find()
        .times(1)
        .return_once(move |_, _| Ok(Some(once)));
    agents
        .expect_find()
        .times(1)
        .return_once(move |_, _| Ok(Some(then)));
    agents
        .expect_update()
        .withf(|_, _, version, _, _| *version == Some(1))
        .times(1)
        .returning(|_, _, _, _, _| Err(AgentStoreError::VersionMismatch { found: 2 }));
    agents
        .expect_update()
        .withf(|_, _, version, _, _| *version == Some(2))
        .times(1)
        .return_once(move |_, _, _, patch, _| {
            let settings = patch.settings.unwrap_or(first.settings);
            Ok(Agent { settings, ..second })
        });
    let world = super::super::fixtures::world(|stores| Stores {
        agents: Arc::new(agents),
        ..stores
    });

    let named = AgentRef::Slug("helper".to_owned());
    let change = Input::new(draft());
    let changed = world
        .use_cases
        .update_agent(&caller, named, None, change)
        .await;

    let settings = changed.map(|agent| agent.settings).unwrap();
    assert_eq!(
        (&*settings.model, &*settings.system_prompt),
        ("model-2", "Be long.")
    );
}

#[tokio::test]
async fn a_change_of_one_version_is_not_made_to_another() {
    let world = world(|stores| stores);
    let caller = world.caller(Role::Owner);
    let agent = world.fixture.new_agent(&caller.scope);
    let mut agents = MockAgentStore::new();
    agents
        .expect_find()
        .times(1)
        .return_once(move |_, _| Ok(Some(agent)));
    agents
        .expect_update()
        .times(1)
        .returning(|_, _, _, _, _| Err(AgentStoreError::VersionMismatch { found: 8 }));
    let world = super::super::fixtures::world(|stores| Stores {
        agents: Arc::new(agents),
        ..stores
    });

    let named = AgentRef::Slug("helper".to_owned());
    let change = Input::new(draft());
    let refused = world
        .use_cases
        .update_agent(&caller, named, Some(7), change)
        .await;

    let mismatch = matches!(refused, Err(UseCaseError::VersionMismatch { found: 8 }));
    assert!(mismatch, "{refused:?}");
}

#[tokio::test]
async fn an_agent_and_its_model_are_named_as_people_are() {
    let world = world(|stores| stores);
    let caller = world.caller(Role::Admin);
    for (bad, code) in [
        ("", FaultCode::Empty),
        (" \u{a0}", FaultCode::Empty),
        (&*"a".repeat(201), FaultCode::OutOfRange),
        ("exe.\u{202e}fdp", FaultCode::InvalidText),
        ("\u{1b}[2J", FaultCode::InvalidText),
    ] {
        let new = NewAgent {
            slug: "helper".to_owned(),
            draft: AgentDraft {
                name: Some(bad.to_owned()),
                provider: Some("scripted".to_owned()),
                model: Some(bad.to_owned()),
                ..AgentDraft::default()
            },
        };
        let refused = world.use_cases.create_agent(&caller, Input::new(new)).await;

        let Err(UseCaseError::Invalid(faults)) = refused else {
            panic!("{bad:.20?}: {refused:?}");
        };
        let found: Vec<_> = faults.iter().map(|it| (&*it.pointer, it.code)).collect();
        assert_eq!(found, [("/name", code), ("/model", code)], "{bad:.20?}");
    }
}
