use super::*;
use crate::describe::Walk;

const SPAN: u64 = 1 << 20;

fn stream(change: impl Fn(&mut Stream)) -> Stream {
    let mut stream = Stream::new("s", vec![0]);
    change(&mut stream);
    stream
}

fn draw(stream: &Stream, count: usize) -> Vec<Ask> {
    let cursor = Cursor::new(1);
    let mut drawer = Drawer::new(stream, SPAN, 7);
    (0..count).map_while(|_| drawer.draw(&cursor, SPAN)).collect()
}

#[test]
fn requests_lie_within_the_store_and_are_aligned() {
    let streams = [
        stream(|_| {}),
        stream(|s| s.read_sizes = Sizes::Weighted(vec![(4096, 50.0), (12_288, 25.0), (65_536, 25.0)])),
        stream(|s| s.read_sizes = Sizes::Range { min: 512, max: 131_072, unit: 512 }),
        stream(|s| s.walk.seek_percent = 30.0),
        stream(|s| s.walk = Walk { align: Some(8192), ..Walk::default() }),
        stream(|s| s.walk.spread = Spread::Zipf(1.2)),
        stream(|s| s.walk.spread = Spread::Pareto(0.2)),
        stream(|s| s.walk.read_hit_percent = 40.0),
        stream(|s| s.read_sizes = Sizes::one(SPAN as u32)),
    ];
    for stream in streams {
        let asks = draw(&stream, 5000);
        assert_eq!(asks, draw(&stream, 5000), "the same for the same seed");
        for ask in asks {
            assert!(ask.offset + u64::from(ask.len) <= SPAN, "{ask:?} of {stream:?}");
            assert!(ask.offset.is_multiple_of(512));
            let align = stream.walk.align.unwrap_or(512);
            assert!(ask.offset.is_multiple_of(u64::from(align)), "{ask:?} of {stream:?}");
        }
    }
}

#[test]
fn shares_are_kept() {
    let mixed = stream(|s| {
        s.read_percent = 70.0;
        s.write_sizes = Sizes::Weighted(vec![(4096, 60.0), (8192, 40.0)]);
        s.walk.read_hit_percent = 25.0;
        s.walk.hit_area = 65_536;
    });
    let asks = draw(&mixed, 100_000);
    let part = |of: &dyn Fn(&&Ask) -> bool| asks.iter().filter(of).count() as f64 / asks.len() as f64;
    assert!((part(&|a| a.read) - 0.70).abs() < 0.01);
    assert!((part(&|a| !a.read && a.len == 8192) - 0.12).abs() < 0.01);
    let hits = part(&|a| a.read && a.offset < 65_536);
    // A quarter, and the sixteenth of the rest that goes there by chance.
    assert!((hits - 0.7 * (0.25 + 0.75 / 16.0)).abs() < 0.01, "{hits}");
}

#[test]
fn a_sequence_goes_on_where_it_was_and_begins_again_or_ends() {
    let third = (SPAN / 3 / 512 * 512) as u32;
    let mut sequential = stream(|s| {
        s.walk = Walk::sequential();
        s.read_sizes = Sizes::one(third);
    });
    let offsets: Vec<u64> = draw(&sequential, 5).iter().map(|a| a.offset).collect();
    let third = u64::from(third);
    assert_eq!(offsets, [0, third, 2 * third, 0, third]);
    sequential.walk.wraps = false;
    assert_eq!(draw(&sequential, 5).len(), 3);
}

#[test]
fn between_seeks_requests_follow_one_another() {
    let asks = draw(&stream(|s| s.walk.seek_percent = 20.0), 50_000);
    let follow = asks.windows(2).filter(|w| w[0].offset + u64::from(w[0].len) == w[1].offset).count();
    let part = follow as f64 / asks.len() as f64;
    assert!((part - 0.80).abs() < 0.02, "{part}");
}

#[test]
fn lanes_share_one_sequence() {
    let sequential = stream(|s| s.walk = Walk::sequential());
    let cursor = Cursor::new(1);
    let mut lanes = [Drawer::new(&sequential, SPAN, 1), Drawer::new(&sequential, SPAN, 2)];
    let offsets: Vec<u64> = (0..6).map(|i| lanes[i % 2].draw(&cursor, SPAN).unwrap().offset / 4096).collect();
    assert_eq!(offsets, [0, 1, 2, 3, 4, 5]);
}

/// The share of the most used tenth of the blocks.
fn top_tenth(spread: Spread) -> f64 {
    let asks = draw(&stream(|s| s.walk.spread = spread), 100_000);
    let mut counts = vec![0u32; (SPAN / 4096) as usize];
    asks.iter().for_each(|a| counts[(a.offset / 4096) as usize] += 1);
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let top: u32 = counts.iter().take(counts.len() / 10).sum();
    f64::from(top) / asks.len() as f64
}

#[test]
fn what_is_hot_takes_its_share() {
    assert!(top_tenth(Spread::Uniform) < 0.15);
    // Scattered blocks may fall together, which only makes them hotter.
    let exact = |theta: f64| {
        let weights: Vec<f64> = (1..=256).map(|k| f64::from(k).powf(-theta)).collect();
        weights[..25].iter().sum::<f64>() / weights.iter().sum::<f64>()
    };
    for theta in [0.5, 0.99, 1.0, 1.2, 2.0] {
        let top = top_tenth(Spread::Zipf(theta));
        assert!(top >= exact(theta) - 0.02 && top < exact(theta) + 0.2, "{theta}: {top} {}", exact(theta));
    }
    let top = top_tenth(Spread::Pareto(0.2));
    assert!((0.68..0.95).contains(&top), "{top}");
}

#[test]
fn each_block_comes_once_before_any_comes_again() {
    for blocks in [1, 2, 3, 7, 64, 255, 256, 257] {
        let len = (SPAN / blocks / 512 * 512) as u32;
        let once = stream(|s| {
            s.read_sizes = Sizes::one(len);
            s.walk.spread = Spread::EachOnce;
        });
        let places = (SPAN - u64::from(len)) / u64::from(len) + 1;
        let offsets: Vec<u64> = draw(&once, 3 * places as usize).iter().map(|ask| ask.offset).collect();
        let mut orders: Vec<&[u64]> = offsets.chunks(places as usize).collect();
        for order in &orders {
            let mut sorted = order.to_vec();
            sorted.sort_unstable();
            assert!(
                sorted.iter().copied().eq((0..places).map(|n| n * u64::from(len))),
                "{blocks}: {order:?}"
            );
        }
        orders.dedup();
        assert!(places < 7 || orders.len() == 3, "{blocks}: the same order again");
        let in_sequence = orders[0].windows(2).filter(|two| two[1] == two[0] + u64::from(len)).count();
        assert!(
            places < 64 || in_sequence < places as usize / 8,
            "{blocks}: {in_sequence} follow one another"
        );
    }
}
