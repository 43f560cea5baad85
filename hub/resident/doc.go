// Package resident says how much memory processes have resident, and gives back what this one does not need.
//
// It promises to change nothing of what a process does. Where the system does not say, there is nothing: no error, and zero.
package resident
