//! Measures a volume of a new pool on one file, in this process or over NBD:
//!
//! ```text
//! pool /dev/shm/pool.img 1G 16K bench         writes and syncs, reads warm, at random and mixed
//! pool /dev/shm/pool.img 1G 16K serve 10909   until killed, at nbd://127.0.0.1:10909/
//! ```
//!
//! The file is made anew, or cut and used again.

use disk::NbdVolume;
use nbd::{Config, Exports, Hold, Listed, Server, Volume};
use pool::{Content, CreateOptions, Host, Pool};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use units::{Error, Kind, Result, parse_size};
use workload::{Limit, Pattern, Spec, VolumeTarget, run};
use world::{Address, OpenMode, Pending};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match linux::block_on(work(args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("pool: {e}");
            ExitCode::FAILURE
        }
    }
}

async fn work(args: Vec<String>) -> Result<()> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let [file, size, block_size, what @ ..] = args.as_slice() else {
        return Err(Error::invalid("usage: pool FILE VOLSIZE VOLBLOCKSIZE bench | serve PORT"));
    };
    let size = parse_size(size).map_err(Error::invalid)?;
    let block_size = parse_size(block_size).map_err(Error::invalid)?;
    make_file(Path::new(file), 2 * size + (1 << 30))?;
    let pool = create(Path::new(file), 2 * size).await?;
    let content = Content::Volume { size, block_size };
    let props = vec![setting("compression", "off")?];
    pool.create_dataset("tank/vol", content, props).await?;
    let lun = NbdVolume::new(pool.open_volume("tank/vol").await?);
    match what {
        ["bench"] => bench(lun, block_size as u32).await?,
        ["serve", port] => serve(lun, port).await?,
        _ => return Err(Error::invalid("say 'bench' or 'serve PORT'")),
    }
    pool.export().await
}

fn make_file(path: &Path, len: u64) -> Result<()> {
    let made = std::fs::File::create(path).and_then(|file| file.set_len(len));
    made.map_err(|e| Error::new(Kind::Io, "make").at(path.display()).because(e))
}

async fn create(file: &Path, cache: u64) -> Result<Pool> {
    let path: PathBuf = file.into();
    let geometry = world::open(&path, OpenMode::ReadOnly)
        .map_err(|e| Error::new(Kind::Io, "open").at(path.display()).because(e))?
        .geometry();
    let leaf = vdev::NewLeaf { path: path.display().to_string(), geometry };
    let group = vdev::Group { layout: vdev::Layout::Stripe, bias: vdev::Bias::Normal, leaves: vec![leaf] };
    let features = ondisk::feature::compatibility_set(ondisk::feature::DEFAULT_COMPATIBILITY);
    pool::create(CreateOptions {
        name: "tank".into(),
        groups: vec![group],
        ashift: 12,
        features: features.into_iter().flatten().collect(),
        root_props: Vec::new(),
        root: Default::default(),
        pool_props: Vec::new(),
        compatibility: None,
        comment: None,
        host: Host::new(1, "workload"),
        cache: Arc::new(arc::Cache::new(cache)),
        hub: Default::default(),
        tunables: Default::default(),
    })
    .await
}

fn setting(name: &str, value: &str) -> Result<(dsl::props::PropName, dsl::props::Value)> {
    use dsl::props::{Limits, Types, When, parse_setting};
    parse_setting(name, value, Types::VOLUME, When::Create, &Limits::default())
}

async fn bench(lun: NbdVolume, block_size: u32) -> Result<()> {
    let blocks = lun.size() / u64::from(block_size);
    let target = Arc::new(VolumeTarget(Arc::new(lun)));
    let base = Spec { block_size, queue_depth: 8, ..Spec::default() };
    let once = Limit::Requests(blocks);
    let sequential = Spec { pattern: Pattern::Sequential, limit: once, ..base.clone() };
    let timed = Spec { queue_depth: 32, limit: Limit::Time(Duration::from_secs(5)), ..base };
    for (name, spec) in [
        ("write and sync", Spec { read_percent: 0, ..sequential.clone() }),
        ("write again and sync", Spec { read_percent: 0, ..sequential.clone() }),
        ("read, warm", sequential),
        ("read at random, warm, depth 32", timed.clone()),
        ("write at random, depth 32", Spec { read_percent: 0, ..timed.clone() }),
        ("read and write at random, depth 32", Spec { read_percent: 50, ..timed }),
    ] {
        println!("{name}: {}", run(target.clone(), &spec).await?);
    }
    Ok(())
}

async fn serve(lun: NbdVolume, port: &str) -> Result<()> {
    let port: u16 = port.parse().map_err(|e| Error::invalid("a port is a number").because(e))?;
    let server = Server::new(Arc::new(One(Arc::new(lun))), Default::default(), Config::default());
    let address = server.listen(&Address::Tcp(([127, 0, 0, 1], port).into()))?;
    println!("serving {address}");
    linux::shutdown_signal().await;
    server.stop().await;
    Ok(())
}

/// A single volume under the name "vol".
#[derive(Debug)]
struct One(Arc<NbdVolume>);

impl One {
    fn volume(&self) -> Arc<dyn Volume> {
        self.0.clone()
    }
}

impl Exports for One {
    fn list(&self) -> Pending<Result<Vec<Listed>>> {
        let only = Listed { name: "vol".into(), description: self.0.description() };
        Box::pin(async move { Ok(vec![only]) })
    }

    fn find(&self, name: &str) -> Pending<Result<Arc<dyn Volume>>> {
        let found =
            if name == "vol" { Ok(self.volume()) } else { Err(Error::new(Kind::NotFound, "open export")) };
        Box::pin(async move { found })
    }

    fn open(&self, name: &str, _client: &Address) -> Pending<Result<(Arc<dyn Volume>, Hold)>> {
        let found = self.find(name);
        Box::pin(async move { found.await.map(|volume| (volume, Box::new(()) as Hold)) })
    }
}
