//go:build !linux

package confine

// DetectSupport says what this system offers: nothing.
func DetectSupport() Support {
	return Support{MissingReason: "this system has nothing that Drawbridge confines programs with: only Linux does"}
}

// RunConfined does nothing here: nobody is confined.
func RunConfined([]string) int { return 126 }
