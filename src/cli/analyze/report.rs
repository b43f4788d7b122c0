//! Writes the result while captures are read, so that captures of any size need the same memory.

use std::io::{self, IsTerminal, Write};

use console::Term;
use sidetone_capture::report::{Csv, Json, Page};
use sidetone_capture::{Group, Groups, Head, Look, Parts, Table, analysis_of};

use crate::cli::inputs::Inputs;

use super::args::{AnalyzeArgs, Colour, Format};
use super::choice::{Choice, Worst};
use super::excerpts::{Excerpt, Excerpts};

type Out = Box<dyn Write>;

/// The result being written.
pub(super) struct Report<'a> {
    args: &'a AnalyzeArgs,
    inputs: &'a Inputs,
    choice: Choice,
    look: Look,
    sink: Sink,
    /// The worst items so far, if only those are shown, with the totals of each capture.
    worst: Option<(Worst, Vec<Totals>)>,
    /// The excerpts of each capture that was written.
    pub(super) excerpts: Excerpts,
    /// The number of calls and streams with a verdict of `--fail-on`.
    pub(super) failures: u64,
    /// How many calls, and streams without signalling, were chosen.
    chosen: u64,
}

/// The figures of a complete capture.
struct Totals {
    head: Head,
    calls: usize,
    streams: usize,
}

/// The current output; none before the first capture.
enum Sink {
    None,
    Csv(Csv<Out>),
    Html(Box<Page>),
    Json(Json<Out>),
    Table(Out),
}

impl<'a> Report<'a> {
    pub(super) fn new(args: &'a AnalyzeArgs, inputs: &'a Inputs) -> Self {
        let is_terminal = args.output.is_none() && io::stdout().is_terminal();
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let width = is_terminal.then(|| Term::stdout().size_checked()).flatten();
        Report {
            args,
            inputs,
            choice: args.choice(),
            look: Look {
                width: width.map(|(_, columns)| usize::from(columns)),
                colour: match args.color {
                    Colour::Always => true,
                    Colour::Auto => is_terminal && !unwanted && !is_dumb,
                    Colour::Never => false,
                },
            },
            sink: Sink::None,
            worst: args.worst.map(|room| (Worst::new(room), Vec::new())),
            excerpts: Excerpts::new(args.wav.is_some() || args.split.is_some()),
            failures: 0,
            chosen: 0,
        }
    }

    /// Whether calls were to be selected, and none matched.
    pub(super) fn has_chosen_nothing(&self) -> bool {
        !self.choice.is_everything() && self.chosen == 0
    }

    /// Adds the capture with this index among the arguments.
    ///
    /// *Errors*: the result cannot be written.
    pub(super) fn add(&mut self, file: usize, parts: Parts) -> io::Result<()> {
        if self.worst.is_none()
            && self.choice.is_everything()
            && self.args.format == Format::Json
            && !self.excerpts.is_wanted()
        {
            return self.json_as_it_comes(parts);
        }
        let mut groups = Groups::from(parts);
        if let Some((mut worst, mut totals)) = self.worst.take() {
            for group in groups.by_ref().filter(|group| self.choice.takes(group)) {
                worst.push(file, group);
            }
            let (calls, streams) = (groups.calls, groups.streams);
            totals.resize_with(file, Totals::none);
            totals.push(Totals { head: groups.head, calls, streams });
            self.worst = Some((worst, totals));
            return Ok(());
        }
        self.write(file, groups)
    }

    /// Writes a capture as JSON call by call, with separate lists of calls and streams.
    fn json_as_it_comes(&mut self, parts: Parts) -> io::Result<()> {
        self.open()?;
        let Sink::Json(json) = &mut self.sink else { return Ok(()) };
        let (choice, failures) = (&self.choice, &mut self.failures);
        let head = parts.head.clone();
        json.each(&head, parts.inspect(|part| *failures += u64::from(choice.fails_part(part))))
    }

    /// Writes the selected items of a capture.
    fn write(&mut self, file: usize, mut groups: Groups) -> io::Result<()> {
        let totals = Totals { head: groups.head.clone(), calls: groups.calls, streams: groups.streams };
        let choice = self.choice.clone();
        self.write_groups(file, &totals, &mut groups.by_ref().filter(|group| choice.takes(group)))
    }

    fn write_groups(
        &mut self,
        file: usize,
        totals: &Totals,
        groups: &mut dyn Iterator<Item = Group>,
    ) -> io::Result<()> {
        self.open()?;
        let (choice, failures, excerpts) = (&self.choice, &mut self.failures, &mut self.excerpts);
        let chosen = &mut self.chosen;
        let groups = groups.inspect(|group| {
            *chosen += 1;
            *failures += u64::from(choice.fails(group));
            excerpts.push(file, || Excerpt::of(group));
        });
        match &mut self.sink {
            Sink::None => Ok(()),
            Sink::Csv(csv) => {
                csv.begin(&totals.head)?;
                for group in groups {
                    csv.group(&totals.head.file, &group)?;
                }
                Ok(())
            }
            Sink::Html(page) => {
                page.begin(&totals.head, totals.calls, totals.streams);
                groups.for_each(|group| page.group(&group));
                Ok(())
            }
            // The JSON lists of calls and of streams refer to each other by index.
            Sink::Json(json) => json.parts(analysis_of(totals.head.clone(), groups.collect()).into()),
            Sink::Table(out) => {
                let mut table = Table::new(self.look);
                groups.for_each(|group| table.push(&group));
                out.write_all(table.finish(&totals.head, totals.calls, totals.streams).as_bytes())
            }
        }
    }

    /// Writes the rest; nothing if nothing was read.
    ///
    /// *Errors*: the result cannot be written.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        if let Some((worst, totals)) = self.worst.take() {
            for (file, groups) in worst.into_files() {
                let Some(totals) = totals.get(file) else { continue };
                self.write_groups(file, totals, &mut groups.into_iter())?;
            }
            // A capture that was read is reported even if none of its items was selected.
            if matches!(self.sink, Sink::None) && !totals.is_empty() {
                for (file, totals) in totals.iter().enumerate() {
                    self.write_groups(file, totals, &mut std::iter::empty())?;
                }
            }
        }
        match std::mem::replace(&mut self.sink, Sink::None) {
            Sink::None => Ok(()),
            Sink::Csv(csv) => csv.finish().map(|_| ()),
            Sink::Html(page) => {
                let out = self.out()?;
                page.finish(io::BufWriter::new(out)).map(|_| ())
            }
            Sink::Json(json) => {
                let mut out = json.finish()?;
                out.write_all(b"\n")?;
                out.flush()
            }
            Sink::Table(mut out) => out.flush(),
        }
    }

    /// Starts the output, if it has not started.
    fn open(&mut self) -> io::Result<()> {
        if let Sink::Table(out) = &mut self.sink {
            return out.write_all(b"\n");
        }
        if !matches!(self.sink, Sink::None) {
            return Ok(());
        }
        let is_list = self.args.files.len() > 1;
        self.sink = match self.args.format {
            Format::Csv => Sink::Csv(Csv::new(self.out()?)),
            Format::Html => Sink::Html(Box::new(Page::new(self.args.files.len()))),
            Format::Json if is_list => Sink::Json(Json::list(self.out()?)),
            Format::Json => Sink::Json(Json::object(self.out()?)),
            Format::Table => Sink::Table(self.out()?),
        };
        Ok(())
    }

    fn out(&self) -> io::Result<Out> {
        Ok(match &self.args.output {
            Some(path) => Box::new(self.inputs.create(path)?),
            None => Box::new(io::stdout().lock()),
        })
    }
}

impl Totals {
    /// The totals before a capture was read.
    fn none() -> Self {
        let head = Head {
            file: String::new(),
            packets: 0,
            bytes: 0,
            skipped: Default::default(),
            times: Default::default(),
            registrations: Vec::new(),
        };
        Totals { head, calls: 0, streams: 0 }
    }
}
