//! Starting and stopping the files of frames: a question for the name of a recording, with the room for it.

use std::path::absolute;

use egui::{Context, Id, Key, Modal, RichText, TextEdit};
use indicatif::DecimalBytes;

use super::App;
use crate::viewer::Recorder;
use crate::window::remote::Wake;
use crate::window::style::DIM;
use stereod_core::{files, thread};

/// Width in points.
const WIDTH: f32 = 300.0;

#[derive(Default)]
pub(super) struct Question {
    pub(super) is_open: bool,
    is_new: bool,
    /// Name as it was typed last.
    name: String,
    /// File that a recording without a name goes to.
    unnamed: String,
    pub(super) room: String,
}

impl Question {
    fn ask(&mut self, recorder: &Recorder) {
        let first = (recorder.files)(None).into_iter().next();
        let file = first.as_ref().and_then(|path| path.file_name());
        self.unnamed = file.map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        self.room.clear();
        (self.is_open, self.is_new) = (true, true);
    }

    /// Lays the question out. Returns whether it was answered with a name.
    pub(super) fn show(&mut self, context: &Context) -> bool {
        if !self.is_open {
            return false;
        }
        let mut starts = false;
        let modal = Modal::new(Id::unique("recording")).show(context, |ui| {
            ui.set_width(WIDTH);
            ui.label("Name of the recording");
            let field = TextEdit::singleline(&mut self.name).desired_width(f32::INFINITY);
            let field = ui.add(field.hint_text(format!("none: {}", self.unnamed)));
            if std::mem::take(&mut self.is_new) {
                field.request_focus();
            }
            starts = field.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter));
            ui.label(RichText::new(&self.room).color(DIM));
            ui.horizontal(|ui| {
                starts |= ui.button("Start (Enter)").clicked();
                self.is_open = !ui.button("Cancel (Esc)").clicked();
            });
        });
        self.is_open &= !starts && !modal.should_close();
        starts
    }
}

impl App {
    /// Stops the recording, or asks for the name of the next one.
    pub(super) fn toggle_recording(&mut self) {
        let Some(recorder) = self.shell.options.recorder.clone() else {
            let cure = "start it with --record OUT.mkv";
            return self.notify(Err(format!("this run writes no frames to files: {cure}")));
        };
        if recorder.recordings.is_on() {
            return recorder.recordings.stop();
        }
        self.question.ask(&recorder);
        self.ask_disk(move || Wake::Room(room(&recorder)));
    }

    pub(super) fn start_recording(&mut self) {
        let Some(recorder) = self.shell.options.recorder.clone() else { return };
        let name = self.question.name.clone();
        self.ask_disk(move || {
            let started = recorder.start(&name);
            Wake::Saved(started.map(|()| format!("recording {name}").trim_end().to_owned()))
        });
    }

    /// Works on a thread of its own, because a disk may let it wait.
    fn ask_disk(&mut self, work: impl FnOnce() -> Wake + Send + 'static) {
        let remote = self.shell.remote.clone();
        let failed = move |broken| remote.wake(Wake::Saved(Err(format!("no recording: {broken}"))));
        let remote = self.shell.remote.clone();
        if let Err(error) = thread::spawn("recording", move || remote.wake(work()), failed) {
            self.notify(Err(format!("no recording: {error}")));
        }
    }
}

/// Tells how much room the files have, and where.
fn room(recorder: &Recorder) -> String {
    let files = (recorder.files)(None);
    let folder = files.first().map(|path| files::folder_of(path));
    let folder = folder.and_then(|path| absolute(path).ok()).unwrap_or_default();
    match recorder.free() {
        Some(bytes) => format!("{} free in {}", DecimalBytes(bytes), folder.display()),
        None => format!("the room in {} is unknown", folder.display()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use egui::{Event, Modifiers, Pos2, RawInput, Rect, vec2};

    use super::*;
    use stereod_io::control::Recordings;

    #[test]
    fn a_name_is_typed_and_entered_and_stays_for_the_next_time() {
        let files = |name: Option<&str>| vec![PathBuf::from(name.unwrap_or("out.mkv"))];
        let recorder = Recorder { recordings: Recordings::default(), files: Arc::new(files) };
        assert!(room(&recorder).contains("B free in /"), "{}", room(&recorder));
        let context = Context::default();
        let pass = |question: &mut Question, events| {
            let screen_rect = Some(Rect::from_min_size(Pos2::ZERO, vec2(640.0, 480.0)));
            let input = RawInput { screen_rect, focused: true, events, ..RawInput::default() };
            let mut starts = false;
            let mut output = context.run_pass(input, |context| starts |= question.show(context));
            // Nobody paints.
            output.textures_delta.clear();
            starts
        };
        let key = |key| Event::Key {
            key,
            physical_key: None,
            pressed: true,
            repeat: false,
            modifiers: Modifiers::NONE,
        };
        let mut question = Question::default();
        assert!(!pass(&mut question, vec![key(Key::Enter)]), "nobody has asked");
        for (typed, pressed, name) in [("yard", Key::Enter, "yard"), (" 2", Key::Escape, "yard 2")]
        {
            question.ask(&recorder);
            assert_eq!(question.unnamed, "out.mkv");
            // The field has the focus from the second pass on.
            (0..2).for_each(|_| assert!(!pass(&mut question, vec![])));
            assert!(!pass(&mut question, vec![Event::Text(typed.into())]));
            assert_eq!(pass(&mut question, vec![key(pressed)]), pressed == Key::Enter);
            assert_eq!((question.is_open, &*question.name), (false, name));
        }
    }
}
