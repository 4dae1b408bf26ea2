package engine

import "github.com/prometheus/client_golang/prometheus"

// Disk tells how much room is left where positions are kept in a folder. It is asked for at each scrape.
type Disk struct {
	dir  string
	free *prometheus.Desc
}

// NewDisk watches the file system of a folder.
func NewDisk(routeName, dir string) *Disk {
	return &Disk{dir: dir, free: prometheus.NewDesc("causeway_state_free_bytes",
		"Bytes that may still be written to the file system of the folder with the positions.", nil, prometheus.Labels{"route": routeName})}
}

// Describe names the gauge.
func (d *Disk) Describe(ch chan<- *prometheus.Desc) { ch <- d.free }

// Collect leaves the gauge out where the system does not tell.
func (d *Disk) Collect(ch chan<- prometheus.Metric) {
	if free, err := FreeBytes(d.dir); err == nil {
		ch <- prometheus.MustNewConstMetric(d.free, prometheus.GaugeValue, free)
	}
}
