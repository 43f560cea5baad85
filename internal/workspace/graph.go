package workspace

// Standing returns how much has been built out of an entity: the number of entities that are derived from it, directly
// or over others. derived returns the entities derived directly from one. Cycles count once.
func Standing(id ID, derived func(ID) []ID) int {
	return len(Descendants(id, derived))
}

// Descendants returns the entities that are derived from an entity, directly or over others, the nearest first. The
// entity itself is not one of them.
func Descendants(id ID, derived func(ID) []ID) (all []ID) {
	seen := map[ID]bool{id: true}
	for waiting := []ID{id}; len(waiting) > 0; waiting = waiting[1:] {
		for _, next := range derived(waiting[0]) {
			if !seen[next] {
				seen[next] = true
				all = append(all, next)
				waiting = append(waiting, next)
			}
		}
	}
	return all
}
