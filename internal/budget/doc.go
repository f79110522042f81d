// Package budget accounts for every frame of a run: where it was counted,
// where it was lost, and whether the sum closes.
//
// A run is a list of rows. A checkpoint row is an independent counter that
// every frame passes; loss, gain and held rows say what happened between two
// checkpoints. Boundaries come in a fixed order (Boundaries); within one
// boundary rows take effect in the order in which they are listed, and what
// follows a checkpoint applies before the next one. The first checkpoint of a
// boundary is the last of the boundary before it.
//
// # Residuals
//
// Between two consecutive checkpoints
//
//	residual = before + gains - losses - held - after
//
// so a positive residual is frames that vanished and a negative one frames
// that nothing announced. It is taken per queue when both checkpoints count the
// same queues of the same side (sender or receiver) and every row between them
// that moved a frame names one of these queues; else over sums. Rows of
// different directions are never mixed. A loss row whose counter is unknown
// counts as 0: the frames it cannot name stay unexplained.
//
// # What unexplained is
//
// unexplained is the sum of |residual|, never a net, with one exception that a
// faulty counter makes necessary. A checkpoint in the middle of the path takes
// part in two residuals: if its counter is N too high they read -N and +N, and
// the plain sum would report 2N for a fault of N. So:
//
//   - when the residuals on both sides of one checkpoint are equal and opposite
//     (its neighbours agree with each other once it is left out), the checkpoint
//     is a counter fault: N is counted once, and Result.Faults names the counter
//     and by how much it is off;
//   - per queue where both sides are per queue. Where one side is per queue and
//     the other a sum, the checkpoint is at fault when the sum is the negative of
//     the queues' total, and the larger of the two sides' |residual| is counted;
//   - a residual belongs to one fault at most, faults are looked for in path
//     order, and nothing but equal and opposite neighbours is ever taken
//     together: +3 beside -2 is 5, +3 and -3 with a residual of 0 between them is
//     6, and two queues with +1 and -1 are 2.
//
// It follows that an offset or a freeze of any one counter by N, and N frames
// lost or made at any one place without a counter, give unexplained N; and that
// unexplained is 0 only when every residual is 0. Frames lost in front of a
// checkpoint and as many made behind it cannot be told from a fault of that
// checkpoint by any arithmetic: they are reported as N, not 2N, and never as 0.
// Result.Gross keeps the plain sum, Result.Residuals every residual.
//
// unexplained is unknown (nil) when one end is missing or a checkpoint that the
// path needs has no value. Result.Known then holds what the checkpoints at hand
// leave unexplained.
//
// # Held frames
//
// What an event (link down, detach, channel change) makes uncountable is a held
// row. Held rows are honoured only up to the sum of the ring sizes of the events
// given to Close; what exceeds that stays unexplained.
package budget
