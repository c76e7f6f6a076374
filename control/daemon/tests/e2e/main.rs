//! The program itself, from outside: real processes, real clients, and the text that people read.
//!
//! ```text
//!   documents   the consoles of README.md and docs/*.md: every command is run, every answer compared
//!   daemon      up, serve, status, down; killed and started again
//!   memory      what it takes, as the kernel says
//!   group       that it gives way in a small control group
//!   soak        all fronts for long, in a control group
//!   commands    zpool and zfs without a daemon; what they say when something is wrong
//!   devices     pools that lack devices
//!   golden      pools of OpenZFS, listed as it lists them
//!   rescue      files of pools that are not mounted
//!   files       file systems in the machine's own tree
//!   remounts    mounts that change while they are used
//!   given_up    mounts that give up what goes
//!   halves      halves of a mirror that were used alone
//!   direct      files read and written past the cache
//!   clients     nbdcopy, an XFS on a loop device
//!   offers      what NBD clients find, and where
//!   iscsi       who sees which LUN, and what is kept of what was written
//!   database    the published deployment over iSCSI, with a database on it
//!   shell       the contexts of an appliance, and the tree of datasets that they leave
//!   api         HTTPS: what drivers ask, users, and what strangers try
//!   browser     the web page: used, photographed, and told of
//!   frames      how smooth it is: sixteen graphs, a day, a week
//!   errlog      a scrub of the error log alone: what is said of it, and what leaves the list
//!   sentences   what status says of devices, with the state that makes it true and the advice that ends it
//!   shapes      pools that grow, are split, are called otherwise, and are read as they were
//!   export      figures that are sent to a collector
//!   many        ten thousand graphs asked at once
//!   top         `cenote top` in a terminal, by its keys
//!   second      one second, as all tell it
//!   alerts      what a webhook and syslog are told
//!   full        a home without room: what is not kept, and that it is all
//!   sums        statistics of a workload that is known
//!   drivers     unmodified drivers of orchestrators, through the life of volumes and shares
//!   advice      what is set wrong, by command, REST and shell, and where it is set
//!   advised     the same under a real load: followed as printed, and measured again
//!   consumers   files for clients, read by what reads them there
//!   trace       what clients ask, recorded, predicted, rehearsed and measured after the change
//!   units       systemd
//!   work        loads of `cenote work` on what is served
//! ```
//!
//! What a machine lacks is named, and its tests are counted as ignored.

#![allow(clippy::unwrap_used)]

mod advice;
mod advised;
mod alerts;
mod api;
mod arc;
mod beside;
mod browser;
mod changes;
mod clients;
mod commands;
mod console;
mod consumers;
mod daemon;
mod database;
mod devices;
mod direct;
mod documents;
mod drivers;
mod errlog;
mod exchange;
mod export;
mod files;
mod frames;
mod full;
mod given_up;
mod golden;
mod group;
mod halves;
mod home;
mod in_the_way;
mod iscsi;
mod many;
mod memory;
mod offers;
mod receiver;
mod remote;
mod remounts;
mod rescue;
mod second;
mod sentences;
mod shapes;
mod shell;
mod snapshots;
mod soak;
mod stuck;
mod sums;
mod top;
mod trace;
mod units;
mod work;

use std::process::ExitCode;

fn main() -> ExitCode {
    let trials = [
        console::trials(),
        documents::trials(),
        daemon::trials(),
        memory::trials(),
        group::trials(),
        soak::trials(),
        commands::trials(),
        devices::trials(),
        sentences::trials(),
        errlog::trials(),
        beside::trials(),
        shapes::trials(),
        exchange::trials(),
        golden::trials(),
        rescue::trials(),
        files::trials(),
        remounts::trials(),
        given_up::trials(),
        stuck::trials(),
        halves::trials(),
        in_the_way::trials(),
        direct::trials(),
        clients::trials(),
        shell::trials(),
        remote::trials(),
        snapshots::trials(),
        api::trials(),
        browser::trials(),
        frames::trials(),
        full::trials(),
        sums::trials(),
        trace::trials(),
        second::trials(),
        top::trials(),
        many::trials(),
        export::trials(),
        advice::trials(),
        advised::trials(),
        consumers::trials(),
        alerts::trials(),
        changes::trials(),
        arc::trials(),
        drivers::trials(),
        units::trials(),
        iscsi::trials(),
        offers::trials(),
        database::trials(),
        work::trials(),
    ];
    interop::harness::main(trials.into_iter().flatten().collect())
}
