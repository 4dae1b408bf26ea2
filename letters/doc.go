// Package letters is the dead letters of a route: records that their target topic refuses, on topics of their own on the target, with where they
// come from; and the way back.
//
// A letter is acknowledged with acks=all before anything is told or stored of it. Whoever dies in between has it written again by the next owner: a
// letter may come twice, and its headers say that it is the same. What is put back stands behind what its target topic has by then. How far that has
// come is kept on the target itself, as metadata of a group, and noted after each fetch of at most 1 MiB: a process that dies in between puts what
// it has put back since then back a second time.
//
// It starts no goroutines. It must not import the data path: connector buries, the programs put back.
package letters
