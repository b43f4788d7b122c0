//! Draws a screen on a terminal.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line as TextLine, Span, Text};
use ratatui::widgets::{Cell, Paragraph, Row as TableRow, Table};

use crate::screen::{Body, Column, Line, ListBody, Screen, Tone, Width};

/// Draws a screen over the complete frame. Without colours, tones are shown as bold, dim or underlined text.
pub fn draw(frame: &mut Frame<'_>, screen: &Screen, colour: bool) {
    let rows = [Constraint::Length(1), Constraint::Length(1), Constraint::Min(1), Constraint::Length(1)];
    let [head, status, body, foot] = Layout::vertical(rows).areas(frame.area());
    frame.render_widget(Paragraph::new(head_line(screen, colour)), head);
    let (tone, text) = &screen.status;
    frame.render_widget(Paragraph::new(Span::styled(text.as_str(), style(*tone, colour))), status);
    match &screen.body {
        Body::List(list) => draw_list(frame, list, body, colour),
        Body::Page(lines, scroll) => draw_page(frame, lines, *scroll, body, colour),
    }
    frame.render_widget(Paragraph::new(Span::styled(screen.footer.as_str(), style(Tone::Dim, colour))), foot);
}

fn head_line(screen: &Screen, colour: bool) -> TextLine<'_> {
    let mut spans = vec![Span::styled(screen.title.as_str(), style(Tone::Strong, colour)), Span::raw("  ")];
    for (place, name) in screen.tabs.iter().enumerate() {
        let chosen = if place == screen.tab { Modifier::REVERSED } else { Modifier::empty() };
        spans.push(Span::styled(format!(" {name} "), Style::default().add_modifier(chosen)));
    }
    TextLine::from(spans)
}

fn draw_list(frame: &mut Frame<'_>, list: &ListBody, area: Rect, colour: bool) {
    if list.rows.is_empty() {
        frame.render_widget(Paragraph::new(list.empty.as_str()), area);
        return;
    }
    // The selected row stays in the middle while there are rows above and below the screen.
    let height = usize::from(area.height.saturating_sub(1)).max(1);
    let first = list.selected.saturating_sub(height / 2).min(list.rows.len().saturating_sub(height));
    let rows = list.rows.iter().enumerate().skip(first).take(height).map(|(place, (tone, cells))| {
        let cells = cells.iter().zip(list.columns).enumerate().map(|(index, (cell, column))| {
            let tone = if index == 0 { *tone } else { Tone::Plain };
            Cell::from(aligned(cell, column)).style(style(tone, colour))
        });
        let chosen = if place == list.selected { Modifier::REVERSED } else { Modifier::empty() };
        TableRow::new(cells).style(Style::default().add_modifier(chosen))
    });
    let widths = list.columns.iter().map(|column| match column.width {
        Width::Cells(cells) => Constraint::Length(cells),
        Width::Share(part) => Constraint::Fill(part),
    });
    let titles = list.columns.iter().map(|column| Cell::from(aligned(column.title, column)));
    let header = TableRow::new(titles).style(style(Tone::Strong, colour));
    frame.render_widget(Table::new(rows, widths).header(header).column_spacing(1), area);
}

fn aligned<'t>(text: &'t str, column: &Column) -> Text<'t> {
    let text = Text::from(text);
    if column.is_number { text.right_aligned() } else { text }
}

fn draw_page(frame: &mut Frame<'_>, lines: &[Line], scroll: usize, area: Rect, colour: bool) {
    let first = scroll.min(lines.len().saturating_sub(1));
    let shown = lines.iter().skip(first).take(usize::from(area.height)).map(|line| {
        let parts = line.parts.iter();
        TextLine::from_iter(parts.map(|(tone, text)| Span::styled(text.as_str(), style(*tone, colour))))
    });
    frame.render_widget(Paragraph::new(shown.collect::<Vec<_>>()), area);
}

fn style(tone: Tone, colour: bool) -> Style {
    let style = Style::default();
    match tone {
        Tone::Bad if colour => style.fg(Color::Red).add_modifier(Modifier::BOLD),
        Tone::Bad | Tone::Strong => style.add_modifier(Modifier::BOLD),
        Tone::Dim => style.add_modifier(Modifier::DIM),
        Tone::Good if colour => style.fg(Color::Green),
        Tone::Good | Tone::Plain => style,
        Tone::Warn if colour => style.fg(Color::Yellow),
        Tone::Warn => style.add_modifier(Modifier::UNDERLINED),
    }
}
