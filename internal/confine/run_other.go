//go:build !linux

package confine

// DetectSupport reports that this system supports no confinement.
func DetectSupport() Support {
	return Support{MissingReason: "Drawbridge can confine programs on Linux only"}
}

// RunConfined does nothing here: no program is confined.
func RunConfined([]string) int { return 126 }
