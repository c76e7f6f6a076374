use super::*;

fn short(shapes: &[Shape], percent: f64) -> Vec<Row> {
    let shapes = shapes.to_vec();
    let options = Options { shapes, percent: vec![percent], requests: 120_000, ..Options::default() };
    run(&options, |_| ()).unwrap()
}

#[test]
fn a_seed_gives_the_same_table_and_another_seed_another() {
    let of = |seed| {
        let options = Options { requests: 20_000, percent: vec![5.0], seed, ..Options::default() };
        run(&options, |_| ()).unwrap()
    };
    let (one, again, other) = (of(1), of(1), of(2));
    assert_eq!(render_json(&one), render_json(&again));
    assert_ne!(render_json(&one), render_json(&other));
}

#[test]
fn what_knows_the_future_is_best_where_blocks_are_of_one_size() {
    for row in short(&Shape::ALL, 5.0).iter().filter(|row| !row.shape.is_mixed()) {
        let belady = row.of(Policy::Belady).unwrap().all;
        assert!(row.ratios.iter().all(|r| r.all <= belady), "{row:?}");
        assert!(
            row.ratios.iter().all(|r| r.policy == Policy::Belady || r.all > 0.0 || row.shape == Shape::Loop)
        );
    }
}

/// What is known of these policies, so that each is what its name says.
#[test]
fn the_references_do_what_their_papers_say() {
    let rows = short(&[Shape::Loop, Shape::Scan, Shape::Recent], 5.0);
    let [round, scan, recent] = &rows[..] else { panic!("{rows:?}") };
    let all = |row: &Row, policy| row.of(policy).unwrap().all;
    assert_eq!(all(round, Policy::Lru), 0.0, "a loop that does not fit is the worst of LRU");
    assert!(all(round, Policy::TinyLfu) > 80.0 && all(round, Policy::S3Fifo) > 50.0, "{round:?}");
    for scan_proof in [Policy::Arc, Policy::Car, Policy::TwoQ, Policy::S3Fifo, Policy::TinyLfu] {
        assert!(all(scan, scan_proof) > all(scan, Policy::Lru) + 3.0, "{scan_proof:?}: {scan:?}");
    }
    assert!(
        (all(recent, Policy::Lru) - 50.0).abs() < 1.0 && all(recent, Policy::TinyLfu) < 10.0,
        "{recent:?}"
    );
}

/// How far the engine's own may be below the best that does not know the future, in percentage points: 2 is the aim. Where
/// more is allowed the table says why; such a figure may only fall.
#[test]
fn the_own_cache_is_near_the_best() {
    let allowed = |shape| match shape {
        // Most of these requests warm it up.
        Shape::Loop => 4.0,
        Shape::Listing => 3.0,
        _ => 2.0,
    };
    for row in short(&Shape::ALL, 5.0) {
        assert!(row.behind().unwrap() <= allowed(row.shape), "{}", render(&[row]));
    }
}

/// One wants blocks to stay, the other room for those that come.
#[test]
fn the_own_cache_has_a_loop_that_does_not_fit_and_what_is_wanted_again_soon() {
    let rows = short(&[Shape::Loop, Shape::Recent], 5.0);
    let own: Vec<f64> = rows.iter().map(|row| row.of(Policy::Own).unwrap().all).collect();
    assert!(own[0] > 80.0 && own[1] > 49.0, "{}", render(&rows));
}

/// A missing block of metadata delays every read below it, so it is these that are to be there.
#[test]
fn of_metadata_the_own_cache_has_more_than_arc() {
    for percent in [5.0, 20.0] {
        for row in short(&[Shape::Files, Shape::Listing, Shape::Volume], percent) {
            let of = |policy| row.of(policy).unwrap().metadata.unwrap();
            assert!(of(Policy::Own) + 0.2 >= of(Policy::Arc), "{}", render(&[row]));
        }
    }
}

#[test]
fn the_table_is_aligned_and_the_document_is_whole() {
    let rows = short(&[Shape::Loop, Shape::Files], 20.0);
    let text = render(&rows);
    let width = text.lines().next().unwrap().len();
    assert!(text.lines().count() == 4 && text.lines().all(|line| line.len() <= width), "{text}");
    let document = render_json(&rows);
    assert_eq!(document.matches("\"policy\"").count(), 2 * Policy::ALL.len());
    assert_eq!(document.matches("\"metadata_hits\":null").count(), Policy::ALL.len());
}

#[test]
fn words_become_options_or_nothing() {
    let parsed = |line: &str| parse(&line.split_whitespace().collect::<Vec<_>>());
    assert_eq!(parsed(""), Some(Options::default()));
    let wanted = Options {
        shapes: vec![Shape::Loop, Shape::Zipf8],
        percent: vec![2.5],
        requests: 1000,
        blocks: 4096,
        seed: 9,
        json: true,
    };
    assert_eq!(
        parsed("-j --shapes loop,zipf.8 --percent 2.5 --requests 1000 --blocks 4096 --seed 9"),
        Some(wanted)
    );
    for nonsense in
        ["--shapes lop", "--percent 0", "--percent x", "--requests 3", "--blocks 10", "--seed", "files"]
    {
        assert_eq!(parsed(nonsense), None, "{nonsense}");
    }
    let small = Options { percent: vec![0.1], ..Options::default() };
    assert!(run(&small, |_| ()).unwrap_err().to_string().contains("fewer than 16 blocks"));
}
