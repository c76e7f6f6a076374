//! Statistics of a whole appliance, in simulated time.

use crate::schedules::tests::{Lab, START, make};
use ::analytics::Errands;
use probe::{Taken, statistics};

#[test]
fn every_statistic_that_is_asked_has_a_source_while_a_pool_is_open() {
    let lab = Lab::new("sources");
    lab.run(START, |appliance| async move {
        make(&appliance).await;
        appliance.begin_analytics_by(Errands::here()).await;
        let asked = statistics().iter().filter(|row| !matches!(row.taken, Taken::Told(..)));
        let without = asked.map(|row| row.name).filter(|name| !appliance.hub().has_source(name));
        assert_eq!(without.collect::<Vec<_>>(), [""; 0]);
        appliance.end_analytics().await;
    });
}
