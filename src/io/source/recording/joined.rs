//! The files of one recording in sequence.

use anyhow::{Result, ensure};

use super::interface::{Lost, Message, Reader, TOPICS_MAX, Topic};

/// Readers of the parts; topics with the same name are joined.
struct Joined {
    topics: Vec<Topic>,
    /// Each part with the number of each of its topics here.
    parts: Vec<(Box<dyn Reader>, Vec<usize>)>,
    wanted: Vec<usize>,
    /// The part being read.
    at: usize,
    is_begun: bool,
}

/// Joins the parts of a recording. A single part stays unchanged.
pub(super) fn join(mut parts: Vec<Box<dyn Reader>>) -> Result<Box<dyn Reader>> {
    if parts.len() == 1
        && let Some(only) = parts.pop()
    {
        return Ok(only);
    }
    let mut topics: Vec<Topic> = Vec::new();
    let mut numbered = Vec::new();
    for part in parts {
        let mut numbers = Vec::new();
        for topic in part.topics() {
            let same = |other: &Topic| {
                (&other.name, &other.kind, &other.encoding)
                    == (&topic.name, &topic.kind, &topic.encoding)
            };
            let number = topics.iter().position(same);
            if let Some(known) = number {
                let sum = topics[known].messages.zip(topic.messages).map(|(a, b)| a + b);
                topics[known].messages = sum;
            } else {
                topics.push(topic.clone());
            }
            numbers.push(number.unwrap_or(topics.len() - 1));
        }
        numbered.push((part, numbers));
    }
    ensure!(topics.len() <= TOPICS_MAX, "the recording has {} topics", topics.len());
    let wanted = Vec::new();
    Ok(Box::new(Joined { topics, parts: numbered, wanted, at: 0, is_begun: false }))
}

impl Reader for Joined {
    fn topics(&self) -> &[Topic] {
        &self.topics
    }

    fn begin(&mut self, topics: &[usize]) -> Result<()> {
        (self.wanted, self.at, self.is_begun) = (topics.to_vec(), 0, false);
        Ok(())
    }

    fn next(&mut self, message: &mut Message) -> Result<bool> {
        while let Some((part, numbers)) = self.parts.get_mut(self.at) {
            if !self.is_begun {
                let own = numbers.iter().enumerate();
                let own = own.filter(|(_, number)| self.wanted.contains(number));
                part.begin(&own.map(|(own, _)| own).collect::<Vec<_>>())?;
                self.is_begun = true;
            }
            if part.next(message)? {
                message.topic = numbers[message.topic];
                return Ok(true);
            }
            (self.at, self.is_begun) = (self.at + 1, false);
        }
        Ok(false)
    }

    fn lost(&mut self) -> Vec<Lost> {
        let of_part = |(part, numbers): &mut (Box<dyn Reader>, Vec<usize>)| {
            let mut lost = part.lost();
            let topics = lost.iter_mut().flat_map(|lost| &mut lost.messages);
            topics.for_each(|(topic, _)| *topic = numbers[*topic]);
            lost
        };
        self.parts.iter_mut().flat_map(of_part).collect()
    }

    fn cut(&self) -> Option<String> {
        self.parts.iter().find_map(|(part, _)| part.cut())
    }
}
