package index

// scoreSteps is the number of score intervals in nthScore.
const scoreSteps = 256

// nthScore returns a lower bound of the score at position most in decreasing order. The bound is at most one
// interval, 1/scoreSteps, below that score. Scores are from 0 to 1. If there are fewer than most scores, it returns
// 0. It counts the scores in each interval, which is faster than sorting.
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
