package mcp

// Waiting returns how many answers that hold memory wait for more.
func (b *AnswerBudget) Waiting() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.reading {
		if a.waiting {
			n++
		}
	}
	return n
}
