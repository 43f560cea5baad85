package index

// steps is how finely nth tells scores apart.
const steps = 256

// nth gives what so many of the scores, which are from 0 to 1, reach at least: not much less than the least of them. It is 0
// where there are not so many. They are counted, not put in order.
func nth[T float32 | float64](scores []T, most int) T {
	var counts [steps + 1]int
	for _, score := range scores {
		counts[int(score*steps)]++
	}
	for i := steps; i > 0; i-- {
		if most -= counts[i]; most <= 0 {
			return T(i) / steps
		}
	}
	return 0
}
