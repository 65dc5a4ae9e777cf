//! Voxels in blocks of 8^3, found by a spatial hash (Niessner et al., Real-time 3D Reconstruction at Scale using Voxel
//! Hashing, SIGGRAPH Asia 2013, section 4). A block stores only the voxels that have points, because a surface crosses
//! a fraction of its voxels.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Voxels along the side of a block.
const SIDE: i32 = 8;

const VOXELS: usize = (SIDE * SIDE * SIDE) as usize;

/// Log odds that a voxel gains in a pair with points in it, and their limit (Hornung et al., OctoMap, Autonomous
/// Robots 2013). A pair that sees through it takes as much, because such rays certainly end behind it: static scenes
/// lose no surface, and the trails of moving things end sooner than with OctoMap's 0.4.
const HIT: f32 = 0.85;
const MISS: f32 = 0.85;
const MOST: f32 = 3.5;

/// Log odds from which a voxel is part of the map: two pairs with points in it.
const KEPT: f32 = 1.2;

/// Largest magnitude of a voxel's coordinates, in voxels.
const REACH: f64 = (1u64 << 30) as f64;

/// Address of a block: part of the path, and the block's coordinates in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address {
    pub part: u32,
    pub x: i32,
    pub y: i32,
    pub z: i32,
}

/// Coordinates of a voxel in voxels.
pub type Cell = [i32; 3];

/// The points measured in a voxel.
#[derive(Clone, Debug)]
pub struct Voxel {
    /// Mean position in metres from the block's corner, weighted by the inverse variances of the points.
    offset_m: [f32; 3],
    /// Sum of the weights, in 1/m^2.
    pub weight: f32,
    /// Mean red, green and blue with the same weights.
    pub rgb: [f32; 3],
    /// Log odds that something is here.
    evidence: f32,
    pub points: u32,
    /// Number of pairs with points here.
    pub pairs: u32,
    /// Number of the last such pair.
    pub seen: u32,
    /// Direction towards the camera of the last such pair, in 1/127.
    pub towards: [i8; 3],
    /// Place in the block.
    slot: u16,
}

/// A point to be fused.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    pub position_m: [f64; 3],
    pub sigma_m: f64,
    pub rgb: [u8; 3],
    /// Unit vector towards the camera.
    pub towards: [f64; 3],
    /// Number of the pair.
    pub pair: u32,
}

#[derive(Debug)]
pub struct Block {
    /// Index into `voxels` plus one of each place; 0 for empty ones.
    slots: Box<[u16; VOXELS]>,
    voxels: Vec<Voxel>,
    /// Number of the last pair with points here.
    seen: u32,
}

/// The voxels of a map.
#[derive(Debug)]
pub struct Blocks {
    voxel_m: f64,
    blocks: HashMap<Address, Block, QuickHash>,
    voxels: usize,
}

pub type QuickHash = BuildHasherDefault<Mixer>;

/// A hash of a few whole numbers, none of which an attacker chooses: each is mixed in by a multiplication.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mixer(u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u32(u32::from(byte)));
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = (self.0.rotate_left(23) ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_i32(&mut self, number: i32) {
        self.write_u32(number as u32);
    }

    fn finish(&self) -> u64 {
        // The table takes its places from the low bits, which multiplications mix least.
        self.0 ^ (self.0 >> 32)
    }
}

impl Voxel {
    fn new(slot: u16) -> Self {
        Self {
            offset_m: [0.0; 3],
            weight: 0.0,
            rgb: [0.0; 3],
            evidence: 0.0,
            points: 0,
            pairs: 0,
            seen: 0,
            towards: [0; 3],
            slot,
        }
    }

    /// Adds a point, and reports whether it is the pair's first one here.
    fn add(&mut self, point: &Measured, corner_m: [f64; 3]) -> bool {
        let weight = (1.0 / (point.sigma_m * point.sigma_m)) as f32;
        self.weight += weight;
        let share = weight / self.weight;
        let offset_m = [0, 1, 2].map(|axis| (point.position_m[axis] - corner_m[axis]) as f32);
        let rgb = point.rgb.map(f32::from);
        for (mean, new) in [(&mut self.offset_m, offset_m), (&mut self.rgb, rgb)] {
            mean.iter_mut().zip(new).for_each(|(mean, new)| *mean += share * (new - *mean));
        }
        self.points = self.points.saturating_add(1);
        let is_first = self.pairs == 0 || self.seen != point.pair;
        if is_first {
            self.evidence = (self.evidence + HIT).min(MOST);
            self.pairs = self.pairs.saturating_add(1);
            self.seen = point.pair;
            self.towards = point.towards.map(|part| (127.0 * part) as i8);
        }
        is_first
    }

    /// Reports whether the voxel is part of the map.
    pub fn is_kept(&self) -> bool {
        self.evidence >= KEPT
    }

    /// Returns the probability that something is here.
    pub fn probability(&self) -> f32 {
        1.0 / (1.0 + (-self.evidence).exp())
    }

    /// Returns the standard deviation of the mean position in metres. The errors of one pair's points are taken as
    /// the same, those of different pairs as independent.
    pub fn sigma_m(&self) -> f32 {
        (self.points as f32 / self.weight / self.pairs as f32).sqrt()
    }
}

impl Block {
    fn new() -> Self {
        Self { slots: Box::new([0; VOXELS]), voxels: Vec::new(), seen: 0 }
    }

    fn remove(&mut self, index: usize) {
        let removed = self.voxels.swap_remove(index);
        self.slots[usize::from(removed.slot)] = 0;
        if let Some(moved) = self.voxels.get(index) {
            self.slots[usize::from(moved.slot)] = index as u16 + 1;
        }
    }
}

impl Blocks {
    pub fn new(voxel_m: f64) -> Self {
        Self { voxel_m, blocks: HashMap::default(), voxels: 0 }
    }

    /// Returns the number of voxels.
    pub fn len(&self) -> usize {
        self.voxels
    }

    /// Returns the voxel in which a point lies; `None` if it is too far from the origin.
    pub fn cell(&self, position_m: [f64; 3]) -> Option<Cell> {
        let at = position_m.map(|metres| (metres / self.voxel_m).floor());
        // Also false for NaN.
        at.iter().all(|voxels| voxels.abs() < REACH).then(|| at.map(|voxels| voxels as i32))
    }

    /// Adds a point, and reports whether it is the pair's first one in its voxel; `None` if it is too far from the
    /// origin.
    pub fn add(&mut self, part: u32, point: &Measured) -> Option<bool> {
        let (address, slot) = place(part, self.cell(point.position_m)?);
        let corner_m = self.corner_m(&address);
        let block = self.blocks.entry(address).or_insert_with(Block::new);
        if block.slots[slot] == 0 {
            block.voxels.push(Voxel::new(slot as u16));
            block.slots[slot] = block.voxels.len() as u16;
            self.voxels += 1;
        }
        block.seen = point.pair;
        Some(block.voxels[usize::from(block.slots[slot]) - 1].add(point, corner_m))
    }

    /// Weakens the voxels of a part for which `is_through(mean position, voxel)` holds, in the blocks for which
    /// `is_near(centre, radius)` holds. Removes those that are likely empty, and returns their number.
    pub fn carve(
        &mut self,
        part: u32,
        is_near: impl Fn([f64; 3], f64) -> bool,
        is_through: impl Fn([f64; 3], &Voxel) -> bool,
    ) -> u32 {
        let (voxel_m, half) = (self.voxel_m, f64::from(SIDE) / 2.0 * self.voxel_m);
        let mut removed = 0;
        self.blocks.retain(|address, block| {
            let corner_m = corner_m(address, voxel_m);
            if address.part != part || !is_near(corner_m.map(|at| at + half), half * 3f64.sqrt()) {
                return true;
            }
            for index in (0..block.voxels.len()).rev() {
                let voxel = &mut block.voxels[index];
                if is_through(position_m(corner_m, voxel), voxel) {
                    voxel.evidence -= MISS;
                    if voxel.evidence <= 0.0 {
                        block.remove(index);
                        removed += 1;
                    }
                }
            }
            !block.voxels.is_empty()
        });
        self.voxels -= removed;
        removed as u32
    }

    /// Gives up blocks until at most `most` voxels remain: first those without voxels that are part of the map, then
    /// those that have not been seen for longest. Returns the number of voxels given up.
    ///
    /// A sixteenth more is given up than needed, so that not every pair has to.
    pub fn make_room(&mut self, most: usize) -> usize {
        if self.voxels <= most {
            return 0;
        }
        let before = self.voxels;
        let rank = |(address, block): (&Address, &Block)| {
            (block.voxels.iter().any(Voxel::is_kept), block.seen, *address)
        };
        let mut ranks: Vec<_> = self.blocks.iter().map(rank).collect();
        ranks.sort_unstable();
        for (_, _, address) in ranks {
            if self.voxels <= most - most / 16 {
                break;
            }
            self.voxels -= self.blocks.remove(&address).map_or(0, |block| block.voxels.len());
        }
        self.blocks.shrink_to_fit();
        before - self.voxels
    }

    /// Returns the voxel of a part, and its mean position.
    pub fn get(&self, part: u32, cell: Cell) -> Option<([f64; 3], &Voxel)> {
        let (address, slot) = place(part, cell);
        let block = self.blocks.get(&address)?;
        let voxel = block.voxels.get(usize::from(block.slots[slot]).checked_sub(1)?)?;
        Some((position_m(self.corner_m(&address), voxel), voxel))
    }

    /// Returns all voxels with their part and mean position, block by block in the order of their addresses.
    pub fn iter(&self) -> impl Iterator<Item = (u32, [f64; 3], &Voxel)> {
        let mut blocks: Vec<_> = self.blocks.iter().collect();
        blocks.sort_unstable_by_key(|(address, _)| **address);
        blocks.into_iter().flat_map(|(address, block)| {
            let corner_m = self.corner_m(address);
            block.voxels.iter().map(move |it| (address.part, position_m(corner_m, it), it))
        })
    }

    fn corner_m(&self, address: &Address) -> [f64; 3] {
        corner_m(address, self.voxel_m)
    }
}

fn corner_m(address: &Address, voxel_m: f64) -> [f64; 3] {
    [address.x, address.y, address.z].map(|blocks| f64::from(blocks) * f64::from(SIDE) * voxel_m)
}

fn position_m(corner_m: [f64; 3], voxel: &Voxel) -> [f64; 3] {
    [0, 1, 2].map(|axis| corner_m[axis] + f64::from(voxel.offset_m[axis]))
}

/// Returns the block of a voxel, and its place in it.
fn place(part: u32, cell: Cell) -> (Address, usize) {
    let [x, y, z] = cell.map(|voxels| voxels.div_euclid(SIDE));
    let [right, down, ahead] = cell.map(|voxels| voxels.rem_euclid(SIDE) as usize);
    let side = SIDE as usize;
    (Address { part, x, y, z }, (ahead * side + down) * side + right)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(position_m: [f64; 3], sigma_m: f64, pair: u32) -> Measured {
        Measured { position_m, sigma_m, rgb: [10, 20, 30], towards: [0.0, 0.0, -1.0], pair }
    }

    #[test]
    fn a_voxel_is_the_weighted_mean_of_its_points() {
        let mut blocks = Blocks::new(1.0);
        assert_eq!(blocks.add(1, &point([-0.5, -0.5, 8.2], 0.1, 1)), Some(true));
        assert_eq!(blocks.add(1, &point([-0.5, -0.5, 8.7], 0.2, 1)), Some(false));
        let (at, voxel) = blocks.get(1, [-1, -1, 8]).unwrap();
        assert!((at[2] - 8.3).abs() < 1e-6 && (at[0] + 0.5).abs() < 1e-6, "{at:?}");
        assert!((voxel.weight - 125.0).abs() < 1e-3);
        assert!((voxel.sigma_m() - (2.0 / 125.0_f32).sqrt()).abs() < 1e-6);
        assert!(blocks.get(2, [-1, -1, 8]).is_none() && blocks.get(1, [0, -1, 8]).is_none());
        assert!(blocks.add(1, &point([f64::NAN, 0.0, 0.0], 0.1, 1)).is_none());
        assert!(blocks.add(1, &point([2e9, 0.0, 0.0], 0.1, 1)).is_none());
        assert_eq!(blocks.len(), 1);
    }

    #[test]
    fn voxels_seen_through_again_and_again_disappear_and_the_others_keep_their_places() {
        let mut blocks = Blocks::new(1.0);
        let centres = [0.5, 1.5, 2.5];
        for pair in 1..=10 {
            centres
                .iter()
                .for_each(|&x| assert!(blocks.add(1, &point([x, 0.5, 0.5], 0.1, pair)).unwrap()));
        }
        let carve =
            |blocks: &mut Blocks, part| blocks.carve(part, |_, _| true, |at, _| at[0] < 1.0);
        assert_eq!((0..6).map(|_| carve(&mut blocks, 2)).sum::<u32>(), 0, "another part");
        let removed: Vec<u32> = (0..6).map(|_| carve(&mut blocks, 1)).collect();
        assert_eq!(removed, [0, 0, 0, 0, 1, 0]);
        assert!(blocks.get(1, [0, 0, 0]).is_none());
        for x in [1, 2] {
            let (at, _) = blocks.get(1, [x, 0, 0]).unwrap();
            assert!((at[0] - 0.5 - f64::from(x)).abs() < 1e-6);
        }
        assert_eq!(blocks.len(), 2);
    }

    #[test]
    fn a_voxel_of_one_pair_is_not_part_of_the_map_yet() {
        let mut blocks = Blocks::new(1.0);
        let kept = |blocks: &Blocks| blocks.get(1, [0, 0, 0]).unwrap().1.is_kept();
        for _ in 0..9 {
            blocks.add(1, &point([0.5; 3], 0.1, 1));
        }
        assert!(!kept(&blocks));
        blocks.add(1, &point([0.5; 3], 0.1, 2));
        assert!(kept(&blocks));
    }

    #[test]
    fn uncertain_blocks_are_given_up_first_and_then_the_oldest() {
        let mut blocks = Blocks::new(1.0);
        for pair in 1..=40 {
            let x = f64::from(pair) * 8.0;
            blocks.add(1, &point([x, 0.0, 0.0], 0.1, 2 * pair));
            // The block of pair 30 has one pair only.
            if pair != 30 {
                blocks.add(1, &point([x, 0.0, 0.0], 0.1, 2 * pair + 1));
            }
        }
        assert_eq!(blocks.make_room(40), 0);
        assert_eq!(blocks.make_room(32), 10);
        assert_eq!(blocks.len(), 30);
        let left: Vec<i32> = (1..=40).filter(|x| blocks.get(1, [8 * x, 0, 0]).is_some()).collect();
        let expected: Vec<i32> = (10..=40).filter(|x| *x != 30).collect();
        assert_eq!(left, expected);
    }
}
