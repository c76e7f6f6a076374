# Distributed under the terms of the MIT License or the Apache License 2.0

EAPI=8

inherit shell-completion systemd

DESCRIPTION="Storage appliance that serves OpenZFS pools, without a kernel module"
# Where it is published is for the publisher to say; RESTRICT="fetch" until then.
HOMEPAGE=""
SRC_URI="cenote-${PV}-x86_64.tar.gz"
S="${WORKDIR}/cenote-${PV}"

LICENSE="|| ( MIT Apache-2.0 )"
SLOT="0"
KEYWORDS="-* ~amd64"
RESTRICT="fetch strip"
QA_PREBUILT="usr/bin/cenote"

src_install() {
	dobin usr/bin/cenote
	systemd_dounit usr/lib/systemd/system/cenote.service usr/lib/systemd/system/cenote.socket
	gunzip usr/share/man/man1/*.gz || die
	doman usr/share/man/man1/*.1
	dobashcomp usr/share/bash-completion/completions/cenote
	dozshcomp usr/share/zsh/site-functions/_cenote
	dofishcomp usr/share/fish/vendor_completions.d/cenote.fish
	dodoc usr/share/doc/cenote/{README.md,CHANGELOG.md,mount.conf}
}
