//! `stereod info`: what is in a recording of messages.

use std::fmt::Write;

use super::{Error, load, print, progress_bar};
use crate::cli::{FlagLayer, InfoArgs};
use crate::run::prepare::rig;
use stereod_io::control::Switch;
use stereod_io::source::gst::Keep;
use stereod_io::source::recording::Recording;
use stereod_io::source::recording::survey::{Chosen, PairSurvey, Survey, TopicSurvey, survey};
use stereod_io::text::on_one_line;

pub fn run(args: InfoArgs) -> Result<(), Error> {
    let mut flags = FlagLayer::default();
    flags.add(&args.pairing);
    let settings = load(&args.common, flags)?.settings;
    // A signal ends the process: there is nothing to finish.
    let (stop, keep) = (Switch::default(), Keep::default());
    let options = settings.source.stream_options(&settings.camera, &stop, &keep);
    let mut recording = Recording::open(&args.recording)?;
    let counts: Option<u64> = recording.topics().iter().map(|topic| topic.messages).sum();
    let bar = progress_bar(counts, args.common.quiet, "messages");
    let wanted = args.topics.wanted();
    let mut survey = survey(&mut recording, &wanted, &options, || bar.inc(1))?;
    bar.finish_and_clear();
    if let Ok(views) = recording.choose(&wanted) {
        let calibration = rig::of_views(&mut recording, views, false);
        survey.calibration_unusable = calibration.err().map(|error| format!("{error:#}"));
    }
    print(match args.json {
        true => serde_json::to_string_pretty(&survey).map_err(anyhow::Error::from)? + "\n",
        false => in_words(&recording.name, &survey),
    })
}

fn in_words(name: &str, survey: &Survey) -> String {
    let Survey { kind, duration_s, topics, .. } = survey;
    let mut text = format!("{name}: {kind}, {duration_s:.2} s\n");
    if let Some(cut) = &survey.cut {
        let _ = writeln!(text, "unfinished: {cut}");
    }
    if let Some(damaged) = &survey.damaged {
        let _ = writeln!(text, "damaged: {damaged}");
    }
    let width = topics.iter().map(|topic| topic.name.chars().count()).max().unwrap_or(0);
    for topic in topics {
        let name = on_one_line(&topic.name);
        let _ = writeln!(text, "  {name:width$}  {}", on_one_line(&about(topic)));
    }
    match &survey.pair {
        Chosen::NoPair(choice) => {
            let _ = writeln!(text, "pair: none is taken: {choice}");
        }
        Chosen::Pair(pair) => text += &about_pair(pair, survey),
    }
    text
}

fn about(topic: &TopicSurvey) -> String {
    let TopicSurvey { kind, messages, rate, gaps, longest_gap_s, .. } = topic;
    let mut text = format!("{kind}, {messages} messages");
    if let Some(rate) = rate {
        let _ = write!(text, ", {rate:.2}/s");
    }
    if let Some(image) = &topic.image {
        let _ = write!(text, ", {}x{} {}", image.width, image.height, image.format);
    }
    if *gaps > 0 {
        let s = if *gaps == 1 { "" } else { "s" };
        let _ = write!(text, ", {gaps} gap{s} of up to {:.0} ms", longest_gap_s * 1e3);
    }
    if let Some(flaw) = &topic.unreadable {
        let _ = write!(text, ", unreadable: {flaw}");
    }
    text
}

fn about_pair(pair: &PairSurvey, survey: &Survey) -> String {
    let PairSurvey { left, right, pairs, unpaired, skew_ms, largest_skew_ms, .. } = pair;
    let skew = match skew_ms.zip(*largest_skew_ms) {
        Some((skew, most)) => format!("{pairs} pairs, skew {skew:.3} ms (at most {most:.3} ms)"),
        None => "no stamps pair".to_owned(),
    };
    let views = match left == right {
        true => format!("both views of {left}"),
        false => format!("{left} and {right}"),
    };
    let mut text = format!("pair: {views}: {skew}");
    if unpaired.iter().any(|count| *count > 0) {
        let _ = write!(
            text,
            "; {} left and {} right images without a partner",
            unpaired[0], unpaired[1]
        );
    }
    for (counts, what) in [
        (pair.copies, "images that are copies of another one"),
        (pair.mistimed, "images with a wrong time"),
        (pair.unreadable, "images that cannot be read"),
    ] {
        if counts != [0; 2] {
            let _ = write!(text, "; {} left and {} right {what}", counts[0], counts[1]);
        }
    }
    if let Some(times) = pair.times {
        let _ = write!(text, "\ntimes: {times}");
    }
    if let Some(flaw) = &pair.unusable {
        let _ = write!(text, "\npair not usable: {}", on_one_line(flaw));
    }
    let calibration = match (&pair.camera_infos, &survey.calibration_files[..]) {
        (Some([left, right]), _) => format!("{left} and {right}"),
        (None, []) => "none; --calibration FILE names one".to_owned(),
        (None, files) => files.join(" and "),
    };
    let _ = writeln!(text, "\ncalibration: {calibration}");
    if let Some(flaw) = &survey.calibration_unusable {
        let _ = writeln!(text, "calibration not usable: {}", on_one_line(flaw));
    }
    text
}
