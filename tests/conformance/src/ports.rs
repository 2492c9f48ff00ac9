//! The registration of the checks for ports other than the stores, in the way of `store_tests!`: one
//! line in an adapter's own tests makes each check a test of it.

/// Registers what every provider must do.
///
/// The factory is an `async fn(Play) -> (Arc<dyn Provider>, impl Sized)`: the provider before another
/// side that plays what the [`Play`](crate::provider::Play) says, and whatever must live as long.
#[macro_export]
macro_rules! provider_tests {
    ($stage:expr) => {
        $crate::port_tests! { provider, $stage;
            answer {
                an_answer_is_whole_with_its_one_stop
                words_are_passed_on_as_they_come
                tool_calls_arrive_whole_and_in_their_order
                a_call_without_arguments_is_one
                an_answer_that_was_cut_off_says_so
                a_conversation_with_every_kind_of_block_is_answered
                calls_at_the_same_time_get_an_answer_each
                it_names_its_protocol
            }
            failure {
                an_answer_that_breaks_off_is_no_answer
                each_kind_of_failure_is_told_apart
                a_busy_other_side_says_when_to_come_back
                a_failure_leaves_nothing_behind
            }
        }
    };
}

/// Registers what a provider must do besides that reaches another process.
///
/// The factory is an `async fn(Play) -> RemoteProvider`.
#[macro_export]
macro_rules! remote_provider_tests {
    ($stage:expr) => {
        $crate::port_tests! { provider, $stage;
            remote {
                a_request_says_all_that_the_call_does
                a_call_is_asked_once_whatever_comes_of_it
                nothing_of_one_call_is_in_the_next
                waiting_has_limits
                nobody_there_is_unavailable
                a_dropped_call_is_let_go_of
                a_failure_tells_no_secret
            }
        }
    };
}

/// Registers what every tool must do.
///
/// The factory is an `async fn() -> (Sample, impl Sized)`: the tool with arguments that are good, and
/// whatever must live as long.
#[macro_export]
macro_rules! tool_tests {
    ($tool:expr) => {
        $crate::port_tests! { tool, $tool;
            every {
                its_definition_is_legal
                its_definition_and_its_class_stay
                good_arguments_bring_a_result
                bad_arguments_are_an_error_that_says_something
                no_arguments_make_it_panic
                executions_at_the_same_time_do_well
            }
        }
    };
}

/// Registers what a tool must do besides that reaches another process.
///
/// The factory is an `async fn(Service, Duration) -> RemoteTool`: a tool that may take so long, before a
/// service which does that.
#[macro_export]
macro_rules! remote_tool_tests {
    ($stage:expr) => {
        $crate::port_tests! { tool, $stage;
            remote {
                the_services_answer_is_the_result
                a_call_is_made_once_and_with_its_key
                a_service_that_fails_is_an_error
                a_service_that_is_not_there_is_an_error
                a_silent_service_is_an_error_in_time
                an_answer_without_an_end_is_cut
                a_dropped_execution_is_let_go_of
            }
        }
    };
}

/// Registers what every telemetry sink must do.
///
/// The factory is an `async fn() -> (Arc<dyn Telemetry>, impl Sized)`: a sink from which nobody takes
/// anything, and whatever must live as long.
#[macro_export]
macro_rules! telemetry_tests {
    ($sink:expr) => {
        $crate::port_tests! { , $sink;
            telemetry {
                it_bears_any_order
                it_never_waits
                it_is_told_from_any_number_of_threads
            }
        }
    };
}

/// Registers what every sink of live events must do.
///
/// The factory is an `async fn() -> (Arc<dyn EventSink>, impl Sized)`: a sink with watchers of
/// [`WATCHED`](crate::event_sink::WATCHED) that never look, and whatever must live as long.
#[macro_export]
macro_rules! event_sink_tests {
    ($sink:expr) => {
        $crate::port_tests! { , $sink;
            event_sink {
                it_bears_any_order
                it_never_waits
                it_is_told_from_any_number_of_threads
            }
        }
    };
}

/// What the macros above have in common: a module for each group, a test for each check.
#[doc(hidden)]
#[macro_export]
macro_rules! port_tests {
    ($($port:ident)?, $factory:expr; $($group:ident { $($check:ident)* })*) => {
        $crate::port_tests! { @each ($($port)?) $factory; $($group { $($check)* })* }
    };
    (@each $port:tt $factory:expr; $($group:ident { $($check:ident)* })*) => {
        $(
            mod $group {
                use super::*;

                $(
                    #[tokio::test(flavor = "multi_thread")]
                    async fn $check() {
                        $crate::port_tests!(@run $port $group $check)($factory).await;
                    }
                )*
            }
        )*
    };
    (@run () $group:ident $check:ident) => { $crate::$group::$check };
    (@run ($port:ident) $group:ident $check:ident) => { $crate::$port::$group::$check };
}
