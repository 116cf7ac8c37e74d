/** How a container says whose it is. An image's labels cannot override these. */
export const nodeLabel = 'berth.node';
export const backendLabel = 'berth.backend';
export const homePlaceLabel = 'berth.data-folder';
export const homeIdLabel = 'berth.data-folder-id';
