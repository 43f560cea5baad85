package index

// scoreSteps is the number of score intervals that nthScore distinguishes.
const scoreSteps = 256

// nthScore returns a score that at least the given number of the scores reach, slightly below the exact one. Scores are
// from 0 to 1. It returns 0 if there are fewer scores. It counts scores in intervals, which is faster than sorting.
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
