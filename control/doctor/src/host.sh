#!/bin/sh
# Gathers what a host says of its disks, as 'cenote doctor host --facts FILE' reads it: "KEY<tab>LINE" for each line of each file of
# interest. It changes nothing, and needs nothing but the shell: no other program has to be there. Lines that name a password or a
# secret are left out.
# FACTS_ROOT: another root than /. FACTS_SECONDS: how long disks are watched, 10 unless told.
LC_ALL=C
export LC_ALL
root=${FACTS_ROOT:-}
seconds=${FACTS_SECONDS:-10}
tab='	'

tell() {
    [ -f "$1" ] && [ -r "$1" ] || return 0
    key=${1#"$root"}
    [ $# -gt 1 ] && key=$2
    count=0
    while IFS= read -r line || [ -n "$line" ]; do
        count=$((count + 1))
        [ "$count" -gt 2000 ] && break
        case $line in
            *[Pp][Aa][Ss][Ss][Ww]* | *[Ss][Ee][Cc][Rr][Ee][Tt]*) continue ;;
            '' | '#'*) continue ;;
        esac
        printf '%s%s%s\n' "$key" "$tab" "$line"
    done 2>/dev/null <"$1"
    return 0
}

uptime_now() {
    now=0
    [ -r /proc/uptime ] && read -r now rest </proc/uptime
    now=${now%%.*}
}

printf 'cenote facts 1\n'
tell "$root/proc/sys/kernel/ostype"
tell "$root/proc/sys/kernel/osrelease"
tell "$root/proc/cmdline"
tell "$root/proc/diskstats" diskstats.before
for disk in "$root"/sys/block/*; do
    case ${disk##*/} in
        loop* | ram* | zram* | '*') continue ;;
    esac
    for name in max_sectors_kb max_hw_sectors_kb scheduler nr_requests read_ahead_kb nomerges minimum_io_size optimal_io_size \
        physical_block_size rotational; do
        tell "$disk/queue/$name"
    done
    for name in vendor model wwid queue_depth; do
        tell "$disk/device/$name"
    done
    tell "$disk/dm/name"
    tell "$disk/dm/uuid"
    for part in "$disk"/*/start; do
        tell "$part"
    done
done
for file in /proc/mounts /etc/fstab /etc/multipath.conf /etc/multipath/conf.d/*.conf /etc/iscsi/iscsid.conf /etc/my.cnf \
    /etc/mysql/my.cnf /etc/my.cnf.d/*.cnf /etc/mysql/conf.d/*.cnf /etc/mysql/mysql.conf.d/*.cnf /etc/mysql/mariadb.conf.d/*.cnf \
    /var/lib/pgsql/data/postgresql.conf /etc/postgresql/*/main/postgresql.conf /etc/udev/rules.d/*.rules /etc/system; do
    case $file in
        *'*'*) for found in "$root"$file; do tell "$found"; done ;;
        *) tell "$root$file" ;;
    esac
done
if [ -r "$root/proc/diskstats" ] && [ "$seconds" -gt 0 ]; then
    if command -v sleep >/dev/null 2>&1; then
        sleep "$seconds"
    else
        # Without sleep the shell itself waits, by the machine's clock.
        uptime_now
        until=$((now + seconds))
        while [ "$now" -gt 0 ] && [ "$now" -lt "$until" ]; do uptime_now; done
    fi
    tell "$root/proc/diskstats" diskstats.after
    printf 'diskstats.seconds%s%s\n' "$tab" "$seconds"
fi
printf 'end\n'
