//! Queues of blocks, linked by index: what every reference policy is made of.
//!
//! ```text
//!   queue   oldest ── … ── newest        a block is in one queue, with a mark of its policy's
//! ```

use crate::shape::Block;
use units::HashMap;

const NIL: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Node {
    block: Block,
    queue: usize,
    mark: u8,
    older: u32,
    newer: u32,
}

#[derive(Clone, Copy, Debug)]
struct Ends {
    oldest: u32,
    newest: u32,
    bytes: u64,
}

/// `N` queues.
#[derive(Debug)]
pub(crate) struct Lists<const N: usize> {
    map: HashMap<u64, u32>,
    nodes: Vec<Node>,
    vacant: Vec<u32>,
    queues: [Ends; N],
}

impl<const N: usize> Lists<N> {
    pub fn new() -> Lists<N> {
        let queues = [Ends { oldest: NIL, newest: NIL, bytes: 0 }; N];
        Lists { map: HashMap::default(), nodes: Vec::new(), vacant: Vec::new(), queues }
    }

    /// The queue that a block is in.
    pub fn find(&self, block: &Block) -> Option<usize> {
        self.map.get(&block.id).map(|slot| self.nodes[*slot as usize].queue)
    }

    /// The mark of a block that is in a queue.
    pub fn mark(&mut self, block: &Block) -> &mut u8 {
        let slot = self.map[&block.id];
        &mut self.nodes[slot as usize].mark
    }

    /// Charged bytes of the blocks in a queue.
    pub fn bytes(&self, queue: usize) -> u64 {
        self.queues[queue].bytes
    }

    pub fn oldest(&self, queue: usize) -> Option<Block> {
        let slot = self.queues[queue].oldest;
        (slot != NIL).then(|| self.nodes[slot as usize].block)
    }

    /// Makes a block the newest of a queue, wherever it was. Its mark stays, and is 0 at first.
    pub fn put(&mut self, queue: usize, block: Block) {
        let mark = self.remove(&block).unwrap_or(0);
        let newest = self.queues[queue].newest;
        let node = Node { block, queue, mark, older: newest, newer: NIL };
        let slot = self.vacant.pop().unwrap_or(self.nodes.len() as u32);
        match self.nodes.get_mut(slot as usize) {
            Some(place) => *place = node,
            None => self.nodes.push(node),
        }
        match newest {
            NIL => self.queues[queue].oldest = slot,
            _ => self.nodes[newest as usize].newer = slot,
        }
        self.queues[queue].newest = slot;
        self.queues[queue].bytes += block.charge();
        self.map.insert(block.id, slot);
    }

    /// Takes a block out of its queue; returns its mark.
    pub fn remove(&mut self, block: &Block) -> Option<u8> {
        let slot = self.map.remove(&block.id)?;
        let Node { queue, mark, older, newer, block } = self.nodes[slot as usize];
        let ends = &mut self.queues[queue];
        ends.bytes -= block.charge();
        match older {
            NIL => ends.oldest = newer,
            _ => self.nodes[older as usize].newer = newer,
        }
        match newer {
            NIL => self.queues[queue].newest = older,
            _ => self.nodes[newer as usize].older = older,
        }
        self.vacant.push(slot);
        Some(mark)
    }

    /// Forgets the oldest of a queue until it has no more than `bytes`.
    pub fn trim(&mut self, queue: usize, bytes: u64) {
        while self.bytes(queue) > bytes {
            let Some(block) = self.oldest(queue) else { return };
            self.remove(&block);
        }
    }
}
