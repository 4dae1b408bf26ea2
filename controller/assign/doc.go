// Package assign decides which worker mirrors which partition.
//
// It promises: the same input gives the same answer, whatever its order; what has a usable owner moves only if balance gains by it; without
// weights every worker ends within one partition of its share, by the fewest moves; with weights within a threshold, as far as single
// partitions allow; what is pinned stays; a draining worker ends with nothing but what is pinned to it; a silent one is given nothing and
// relieved of nothing while another answers; every partition is placed as long as one worker can take it. It never decides by a load that
// nobody has measured: an unknown weight counts as the mean of the known ones.
//
// It is pure: no IO, no clock, no goroutines, no log. It imports the standard library and route alone.
package assign
