//! What every adapter of a port must do: one plain async function for each rule, over nothing but the
//! ports.
//!
//! An adapter's own tests register all of them in one line, a store's with [`store_tests!`]; whoever adds
//! a check adds it to every adapter. The names of checks are sentences. No check sleeps: time passes when
//! it says so.
//!
//! The other ports are registered with [`provider_tests!`], [`tool_tests!`], [`telemetry_tests!`] and
//! [`event_sink_tests!`]; what reaches another process also with [`remote_provider_tests!`] or
//! [`remote_tool_tests!`], before an [`OtherSide`] that the check has in its hand.
//!
//! [`life`], [`queue`], [`census`] and [`retention`] compare a store with the domain's own functions over random input;
//! the other groups say the rules one by one, for people.

pub mod actor;
pub mod agents;
pub mod audit;
pub mod cancel;
pub mod census;
pub mod claim;
mod clock;
pub mod event_sink;
pub mod fair;
pub mod fence;
mod fixture;
pub mod idempotency;
pub mod journal;
pub mod keys;
pub mod life;
pub mod line;
mod model;
mod other_side;
pub mod pages;
pub mod people;
mod ports;
pub mod provider;
pub mod queue;
mod random;
pub mod renewal;
pub mod repeat;
pub mod retention;
mod runs;
pub mod sessions;
pub mod situation;
pub mod story;
pub mod sweep;
pub mod telemetry;
pub mod tenancy;
pub mod text;
mod told;
pub mod tool;
pub mod turn;
pub mod usage;
mod writes;

pub use clock::ManualClock;
pub use fixture::{Fixture, Place};
pub use other_side::{FakeServer, OtherSide, Reply};
pub use runs::{OnRecord, TTL, no_limits, owner, refused};
pub use writes::{USAGE, result_of};

/// Registers every check of this crate as a test of the store that a factory makes.
///
/// The factory is an `async fn(Arc<ManualClock>) -> (Stores, impl Sized)`: an empty store which reads
/// that clock, and whatever must live as long as the store does (a directory, a server, `()`).
#[macro_export]
macro_rules! store_tests {
    ($empty_stores:expr) => {
        $crate::store_tests! { @each $empty_stores;
            life {
                any_history_ends_where_the_rules_say
            }
            queue {
                any_claim_gets_what_the_queues_rule_names
            }
            census {
                any_census_counts_what_the_rule_counts
                where_nothing_waits_or_runs_nothing_is_counted
            }
            situation {
                what_stands_before_a_run_is_told_in_order
                a_situation_tells_what_is_true_now
                a_situation_is_there_for_those_who_see_the_run
                the_holder_of_each_attempt_stays_on_record
            }
            fence {
                a_lost_lease_writes_nothing
                a_process_cannot_write_as_its_former_self
                a_lost_lease_writes_nothing_while_the_run_waits
                a_guessed_lease_writes_nothing
                nothing_is_written_behind_the_end
                a_late_write_is_taken_while_nobody_took_the_run
            }
            claim {
                of_eight_claimers_exactly_one_wins
                racing_batches_hand_out_each_run_once
                a_claim_brings_all_that_the_executor_needs
                a_later_claim_tells_how_long_ago_the_run_was_started_first
                runs_of_a_session_start_in_their_order
                a_waiting_run_holds_back_the_later_ones_of_its_session
                a_batch_has_at_most_one_run_of_a_session
                a_run_of_a_newer_memory_format_is_left_to_who_can_read_it
                who_asks_for_one_run_gets_that_one_or_nothing
            }
            fair {
                tenants_take_turns
                a_tenant_with_fewer_running_runs_comes_first
                a_suspended_tenants_runs_are_not_claimed
                a_tenants_cap_is_kept
            }
            turn {
                the_input_is_said_once_however_often_the_run_is_claimed
                a_turn_that_was_begun_and_not_answered_is_discarded_at_the_next_claim
                a_boundary_commits_all_of_its_turn
                a_boundary_out_of_order_leaves_nothing
                a_turn_has_one_answer
                an_answered_turn_takes_no_repair
                a_turn_without_an_answer_has_no_boundary
                the_end_commits_its_turn_and_the_terminal_event
                a_failure_is_kept_with_its_reason
                tries_are_counted_across_claims_until_the_turn_completes
            }
            repeat {
                each_write_can_be_repeated_after_an_unknown_outcome
                a_repeat_is_recognised_before_the_fence_refuses
            }
            journal {
                an_answer_journals_its_whole_batch
                a_result_begins_the_call_that_takes_its_place
                unreadable_arguments_are_kept_beside_the_call
                a_claim_brings_the_journal_of_the_open_turn
                a_new_attempt_goes_on_with_the_open_calls
                turns_that_are_complete_stay_in_the_journal
            }
            sweep {
                a_live_lease_is_not_taken
                a_run_that_was_taken_back_goes_on_behind_its_last_turn
                the_longest_silent_is_taken_first
                a_start_up_takes_back_every_running_run_at_once
                each_stalled_attempt_waits_longer
                a_run_that_stalls_too_often_fails_and_its_session_goes_on
                a_completed_turn_forgets_the_stalls_before_it
                a_cancel_that_was_asked_for_wins_over_the_sweep
                the_sweep_answers_the_open_calls_of_a_run_that_it_ends
                the_sweep_leaves_open_the_calls_of_a_run_that_goes_on
            }
            story {
                a_story_has_the_claims_the_ways_back_and_the_turns
                a_story_is_of_the_run_as_it_is_now
                who_is_not_there_has_no_story
            }
            retention {
                any_history_leaves_what_the_rule_keeps
                a_step_goes_on_behind_old_answers
                a_run_goes_with_all_that_is_its_alone
                what_has_not_ended_stays
                an_idle_session_goes_behind_its_runs
                a_later_run_has_the_history_of_those_that_are_gone
                a_step_is_no_longer_than_was_asked_for
                what_many_remove_at_once_goes_once
                a_run_finds_its_session_or_none
            }
            cancel {
                a_queued_run_ends_at_once
                a_running_run_is_asked_to_end
                asking_again_changes_nothing
                a_run_that_ended_refuses
                an_end_after_the_request_is_a_cancelled_one
                a_run_that_is_given_back_ends_instead
                a_run_that_is_given_back_at_its_boundary_ends_there
                a_queued_run_answers_its_open_calls_as_it_ends
            }
            line {
                the_cap_is_exact_whatever_races_for_it
                an_end_makes_room
                reject_refuses_a_busy_session
                interrupt_ends_what_is_pending_and_starts_behind_it
                an_interrupt_that_is_refused_cancels_nothing
                an_interrupt_answers_open_calls
                a_run_is_accepted_once
                a_run_is_kept_as_it_was_accepted
            }
            renewal {
                a_renewal_pushes_the_end_away
                renewed_lost_and_forgotten_leases_are_told_apart
                a_lease_that_ran_out_is_not_renewed
                a_former_attempt_is_lost_and_the_present_one_an_orphan
                a_claim_whose_answer_was_lost_is_found
                every_renewal_and_write_tells_what_is_true_now
            }
            tenancy {
                another_tenant_sees_nothing
                another_member_sees_nothing
                a_members_session_is_his_and_the_admins
                an_agent_is_its_tenants_alone
                an_audit_trail_is_its_tenants_alone
            }
            text {
                text_of_any_kind_comes_back_as_it_was
                the_null_character_of_a_model_is_replaced
                the_null_character_of_a_tool_is_replaced
                an_event_names_the_call_as_the_journal_has_it
                the_null_character_of_an_error_is_replaced
            }
            people {
                a_tenant_is_added_with_its_owner_and_his_key
                a_tenants_slug_is_taken_once
                an_address_is_taken_once_in_its_tenant
                a_user_is_there_for_his_tenant_only
                a_user_is_changed_in_what_is_named
                the_last_active_owner_stays_one
                owners_who_demote_each_other_leave_one
                a_user_is_changed_by_those_who_may_as_he_is_then
                tenants_and_users_are_listed_newest_first
            }
            keys {
                a_keys_prefix_is_taken_once
                a_key_is_made_by_who_may_act_for_its_user
                a_key_is_revoked_once
                a_key_is_found_without_its_tenant
                a_keys_use_is_noted_to_the_minute
                a_credential_is_as_all_of_it_is_now
                keys_are_listed_newest_first
            }
            agents {
                an_agent_is_found_by_id_and_slug
                a_slug_is_taken_even_by_an_archived_agent
                a_change_makes_the_version_one_higher
                a_change_that_changes_nothing_makes_no_version
                a_change_from_another_version_is_refused
                an_archived_agent_stays_readable
                an_archived_agent_takes_nothing_new
                a_run_keeps_the_agent_as_it_was
            }
            sessions {
                a_session_is_found_as_it_was_made
                a_session_is_changed_in_what_is_named
                a_message_without_a_run_stands_between_those_of_runs
                a_running_run_refuses_messages
                messages_are_read_from_a_number_on
                a_busy_session_is_not_removed
                a_removed_session_takes_all_with_it_but_the_audit_trail
            }
            pages {
                runs_are_read_once_while_others_come_in
                a_full_last_page_has_no_next
                runs_are_found_by_state_session_and_agent
                sessions_and_agents_are_listed_newest_first
                the_audit_trail_is_read_in_pages
                events_are_read_behind_a_number
            }
            actor {
                a_revoked_key_changes_nothing
                an_expired_key_changes_nothing
                a_disabled_user_changes_nothing
                a_suspended_tenant_changes_nothing
                a_demoted_user_changes_nothing_as_what_he_was
                a_key_is_its_users_alone
                who_may_still_act_does
                who_steps_down_does_it_himself
                a_refusal_is_recorded_whoever_asked
                a_run_goes_on_whatever_becomes_of_the_key_that_made_it
            }
            idempotency {
                a_run_is_made_once_for_its_key
                a_session_is_made_once_for_its_key
                a_message_is_said_once_for_its_key
                another_body_makes_nothing
                a_key_is_of_its_user_and_its_call
                d35_fifty_requests_at_once_make_one_run
                a_refused_change_leaves_its_key_free
                a_key_is_good_for_a_day
                old_answers_are_removed_and_nothing_else
            }
            audit {
                a_row_is_kept_as_it_was_given
                an_accepted_run_has_one_row_with_its_trace
                the_row_of_an_accepted_run_tells_of_its_agent
                a_refused_run_has_no_row
                rows_are_found_by_action_target_and_actor
                a_store_that_works_says_so
            }
            usage {
                usage_is_the_sum_over_the_runs_that_have_ended
                a_period_begins_with_its_first_moment_and_ends_before_its_last
                who_used_the_most_comes_first
                a_sum_that_is_too_large_is_the_largest
            }
        }
    };
    (@each $empty_stores:expr; $($group:ident { $($check:ident)* })*) => {
        $(
            mod $group {
                use super::*;

                $(
                    #[tokio::test(flavor = "multi_thread")]
                    async fn $check() {
                        let clock = ::std::sync::Arc::new($crate::ManualClock::default());
                        let (stores, _guard) = ($empty_stores)(::std::sync::Arc::clone(&clock)).await;
                        $crate::$group::$check($crate::Fixture::new(stores, clock)).await;
                    }
                )*
            }
        )*
    };
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    #[test]
    fn every_check_is_registered() {
        let mut waiting = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
        let registered = concat!(include_str!("lib.rs"), include_str!("ports.rs"));
        while let Some(path) = waiting.pop() {
            if let Ok(files) = fs::read_dir(&path) {
                waiting.extend(files.map(|file| file.expect("the sources can be listed").path()));
                continue;
            }
            let source = fs::read_to_string(&path).expect("a source");
            let checks = source.split("\npub async fn ").skip(1);
            for check in checks.filter_map(|rest| rest.split(['(', '<']).next()) {
                let line = format!("\n                {check}\n");
                assert!(registered.contains(&line), "{check} of {path:?}");
            }
        }
    }
}
