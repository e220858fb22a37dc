module divan-worker

go 1.19
