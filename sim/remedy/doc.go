// Package remedy lists what might help a system that fails: changes of every part of the policy on both sides of a
// call, and of the queues of services.
//
// A change is a piece of a policy file. It has its effect by being written over the policy of a variant and read again,
// so that what is tried is what a reader pastes. A piece holds whole sections: it replaces the section of that name.
//
// The numbers of a change follow from the place that it is for (its rate, its callers, its capacity): the same change
// at another service, or in another system, has the numbers of that one. Changes there have the same Name.
package remedy
