package index

// scoreSteps is how finely nth tells scores apart.
const scoreSteps = 256

// nthScore returns what so many of the scores, which are from 0 to 1, reach at least: not much less than the least of
// them. It is 0 where there are not so many. They are counted, not put in order.
func nthScore[T float32 | float64](scores []T, most int) T {
	var counts [scoreSteps + 1]int
	for _, score := range scores {
		counts[int(score*scoreSteps)]++
	}
	for i := scoreSteps; i > 0; i-- {
		if most -= counts[i]; most <= 0 {
			return T(i) / scoreSteps
		}
	}
	return 0
}
