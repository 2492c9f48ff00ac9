//! Finds the places that a question names.

/// How many places one answer asks for.
const MAX_ZONES: usize = 4;

/// What IANA's names of zones begin with.
const AREAS: [&str; 11] = [
    "africa",
    "america",
    "antarctica",
    "arctic",
    "asia",
    "atlantic",
    "australia",
    "etc",
    "europe",
    "indian",
    "pacific",
];

/// Places that people ask for, and their zones.
const PLACES: [(&str, &str); 43] = [
    ("amsterdam", "Europe/Amsterdam"),
    ("athens", "Europe/Athens"),
    ("auckland", "Pacific/Auckland"),
    ("bangkok", "Asia/Bangkok"),
    ("beijing", "Asia/Shanghai"),
    ("berlin", "Europe/Berlin"),
    ("buenos aires", "America/Argentina/Buenos_Aires"),
    ("cairo", "Africa/Cairo"),
    ("chicago", "America/Chicago"),
    ("delhi", "Asia/Kolkata"),
    ("denver", "America/Denver"),
    ("dubai", "Asia/Dubai"),
    ("dublin", "Europe/Dublin"),
    ("germany", "Europe/Berlin"),
    ("helsinki", "Europe/Helsinki"),
    ("hong kong", "Asia/Hong_Kong"),
    ("istanbul", "Europe/Istanbul"),
    ("jakarta", "Asia/Jakarta"),
    ("japan", "Asia/Tokyo"),
    ("johannesburg", "Africa/Johannesburg"),
    ("kyiv", "Europe/Kyiv"),
    ("lagos", "Africa/Lagos"),
    ("lisbon", "Europe/Lisbon"),
    ("london", "Europe/London"),
    ("los angeles", "America/Los_Angeles"),
    ("madrid", "Europe/Madrid"),
    ("melbourne", "Australia/Melbourne"),
    ("mexico city", "America/Mexico_City"),
    ("mumbai", "Asia/Kolkata"),
    ("nairobi", "Africa/Nairobi"),
    ("new york", "America/New_York"),
    ("oslo", "Europe/Oslo"),
    ("paris", "Europe/Paris"),
    ("rome", "Europe/Rome"),
    ("san francisco", "America/Los_Angeles"),
    ("seoul", "Asia/Seoul"),
    ("shanghai", "Asia/Shanghai"),
    ("singapore", "Asia/Singapore"),
    ("stockholm", "Europe/Stockholm"),
    ("sydney", "Australia/Sydney"),
    ("tokyo", "Asia/Tokyo"),
    ("toronto", "America/Toronto"),
    ("utc", "UTC"),
];

/// Words of a question for the time.
const TIME_WORDS: [&str; 10] = [
    "clock", "date", "day", "hour", "late", "now", "o'clock", "time", "today", "weekday",
];

/// The zones of the places that a text names, in its order, and those that it spells as IANA does.
pub(super) fn named_in(text: &str) -> Vec<String> {
    let words = spaced(text);
    let lower = words.to_ascii_lowercase();
    let places = PLACES.iter().filter_map(|(place, zone)| {
        let at = lower.find(&format!(" {place} "))?;
        Some((at, (*zone).to_owned()))
    });
    let spelled = words
        .split(' ')
        .filter(|word| is_zone(word))
        .filter_map(|word| {
            let at = words.find(word)?;
            Some((at, word.to_owned()))
        });
    let mut found: Vec<(usize, String)> = places.chain(spelled).collect();
    found.sort();
    let mut zones = Vec::new();
    for (_, zone) in found {
        if zones.len() < MAX_ZONES && !zones.contains(&zone) {
            zones.push(zone);
        }
    }
    zones
}

/// Whether a text asks for the time, or names a place and so can mean nothing else.
pub(super) fn is_about_time(text: &str) -> bool {
    let lower = spaced(text).to_ascii_lowercase();
    let said = |word: &&str| lower.contains(&format!(" {word} "));
    TIME_WORDS.iter().any(said) || !named_in(text).is_empty()
}

/// The words of a text, a space around each.
fn spaced(text: &str) -> String {
    let within = |c: char| c.is_alphanumeric() || matches!(c, '/' | '_' | '-' | '+' | '\'');
    let words = text
        .split(|c: char| !within(c))
        .filter(|word| !word.is_empty());
    format!(" {} ", words.collect::<Vec<_>>().join(" "))
}

fn is_zone(word: &str) -> bool {
    let Some((area, place)) = word.split_once('/') else {
        return false;
    };
    AREAS.contains(&area.to_ascii_lowercase().as_str()) && !place.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_in_the_order_of_the_text() {
        let zones = named_in("time in TOKYO, new york or Berlin? And Tokyo again");

        assert_eq!(zones, ["Asia/Tokyo", "America/New_York", "Europe/Berlin"]);
    }

    #[test]
    fn zones_are_taken_as_they_are_spelled() {
        let zones = named_in("Is Europe/Berlin ahead of Etc/GMT+5 and and/or other/things?");

        assert_eq!(zones, ["Europe/Berlin", "Etc/GMT+5"]);
    }

    #[test]
    fn a_part_of_a_word_is_no_place() {
        assert_eq!(
            named_in("a berliner's comparison of romeo"),
            [] as [&str; 0]
        );
    }

    #[test]
    fn no_more_is_asked_for_than_four() {
        assert_eq!(named_in("Oslo Rome Paris London Berlin Tokyo").len(), 4);
    }

    #[test]
    fn a_text_about_time_names_a_place_or_the_time() {
        assert!(is_about_time("What time is it?"));
        assert!(is_about_time("Tokyo?"));
        assert!(!is_about_time("Sometimes I wonder"));
    }
}
