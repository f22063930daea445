//! The table, as Markdown.

use crate::stats::Rounds;

/// One figure of one server.
pub struct Row {
    pub server: String,
    pub rounds: Rounds,
}

/// Prints a scenario's rows. `ratio_to` names the server that the others are divided by.
pub fn table(title: &str, unit: &str, rows: &[Row], ratio_to: &str) {
    println!("\n**{title}**\n\n| server | {unit} | least – most | ÷ {ratio_to} |\n| --- | --- | --- | --- |");
    let base = rows.iter().find(|row| row.server == ratio_to).map_or(f64::NAN, |row| row.rounds.median());
    for row in rows {
        let (least, most) = row.rounds.spread();
        let median = row.rounds.median();
        println!(
            "| {} | {} | {} – {} | {:.2} |",
            row.server,
            number(median),
            number(least),
            number(most),
            median / base
        );
    }
}

/// Three digits that count.
pub fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 1e6 => format!("{:.2} M", value / 1e6),
        size if size >= 1e4 => format!("{:.0} k", value / 1e3),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
