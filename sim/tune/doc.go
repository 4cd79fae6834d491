// Package tune looks for the policy that is best over several scenarios, healthy days among them.
//
// It begins with the default policy and adds one change of sim/remedy after the other, each found by successive halving
// on common random numbers. A constant that is tuned fits the storm that it was tuned on, and may do harm in every
// other one. So a change is accepted only if it is no worse than the default policy in any of the scenarios, and if
// over perturbed copies of them (rates, times, sizes and faults up to a half more or less) and over random systems of
// sim/harm it does no harm either. There a change is the one of the same name, with the numbers of that system.
//
// How bad a run is, is its objective: of goodput, what is missing to all requests. Policies are compared by the ratio
// of that on the same seeds, where both are raised by a thousandth.
package tune
